"""What can go wrong between farm and the gateway, whichever way is used, and the rights asked for."""

from __future__ import annotations

from enum import StrEnum

READ = "operator.read"
ADMIN = "operator.admin"


class Trouble(StrEnum):
    """What kind of thing went wrong, as far as anybody acts on it."""

    DOWN = "down"
    HUNG = "hung"
    STARTING = "starting"
    SECRET = "secret"  # ours cannot be read
    REFUSED = "refused"  # the gateway does not take our secret
    SCOPE = "scope"
    PROTOCOL = "protocol"
    LOST = "lost"
    NOT_FOUND = "not-found"
    INVALID = "invalid"
    BUSY = "busy"
    FAILED = "failed"


class GatewayError(Exception):
    """A call or connection that failed, in one line without secrets.

    Attributes:
        trouble: the kind.
        retry_after_s: when the gateway asks to be asked again.
        uncertain: the request was sent and its answer never came: it may have been done.
    """

    def __init__(
        self,
        trouble: Trouble,
        message: str,
        *,
        retry_after_s: float | None = None,
        uncertain: bool = False,
    ) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.retry_after_s = retry_after_s
        self.uncertain = uncertain
