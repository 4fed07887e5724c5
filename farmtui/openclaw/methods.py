"""The gateway's cron methods, with what differs between its versions evened out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from farmtui.openclaw.jobs import add_params, job_id_of, least_params
from farmtui.openclaw.trouble import GatewayError, Trouble

if TYPE_CHECKING:
    from farmtui.openclaw.gateway import Gateway

# Far more than any gateway holds: pages that never end are a fault of the other side.
_MAX_PAGES = 500


class GatewayMethods:
    """cron.list, cron.add and cron.remove over one connection.

    Args:
        gateway: connected, with the scopes needed.
        timeout: seconds for each call here, all its requests together.
    """

    def __init__(self, gateway: Gateway, timeout: float) -> None:
        self._gateway = gateway
        self._timeout = timeout

    def jobs(self) -> list[Any]:
        """All jobs, disabled ones too, from all pages.

        Raises:
            GatewayError: the gateway does not answer, or not with a list.
        """
        deadline = time.monotonic() + self._timeout
        # Nothing but includeDisabled is known to every version, and an unknown property refuses the call;
        # an offset is only sent to a gateway that asked for it.
        params: dict[str, Any] = {"includeDisabled": True}
        jobs: list[Any] = []
        for _ in range(_MAX_PAGES):
            try:
                page = self._gateway.call("cron.list", params, max(0.1, deadline - time.monotonic()))
            except GatewayError as error:
                # Asking changes nothing.
                error.uncertain = False
                raise
            found = page.get("jobs") if isinstance(page, Mapping) else None
            if not isinstance(page, Mapping) or not isinstance(found, list):
                raise GatewayError(Trouble.FAILED, "cron.list answered without a list of jobs")
            jobs += found
            offset, before = page.get("nextOffset"), params.get("offset", 0)
            if page.get("hasMore") is not True or not isinstance(offset, int) or offset <= before:
                break
            params["offset"] = offset
        return jobs

    def remove(self, job_id: str) -> bool:
        """Remove a job: False where there was none of that id, whichever way the version says so.

        Raises:
            GatewayError: the gateway refused or did not answer; `uncertain` where it may have done it.
        """
        try:
            answer = self._gateway.call("cron.remove", {"id": job_id}, self._timeout)
        except GatewayError as error:
            if error.trouble is Trouble.NOT_FOUND:
                return False
            raise
        return not (isinstance(answer, Mapping) and answer.get("removed") is False)

    def add(self, definition: Mapping[str, Any]) -> str:
        """Add a job; its new id. Waits where the gateway asks to (30 a minute), within the time-out.

        Raises:
            GatewayError: the gateway refused or did not answer; `uncertain` where it may have done it.
        """
        deadline = time.monotonic() + self._timeout
        params = add_params(definition)
        while True:
            left = max(0.1, deadline - time.monotonic())
            try:
                job = self._gateway.call("cron.add", params, left)
                break
            except GatewayError as error:
                least = least_params(definition)
                if error.trouble is Trouble.INVALID and params != least:
                    params = least
                elif error.trouble is Trouble.BUSY and error.retry_after_s is not None:
                    if error.retry_after_s >= left:
                        wait = f"{error.retry_after_s:.0f}s"
                        raise GatewayError(Trouble.BUSY, f"{error}: try again in {wait}") from None
                    time.sleep(error.retry_after_s)
                else:
                    raise
        job_id = job_id_of(job) if isinstance(job, Mapping) else None
        if job_id is None:
            raise GatewayError(Trouble.FAILED, "cron.add answered without an id", uncertain=True)
        return job_id
