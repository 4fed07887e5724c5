"""Who acts: what the journal says of the person at the keyboard."""

from __future__ import annotations

import getpass
import os
import pwd
import socket
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator, as well as the machine can tell.

    Attributes:
        user: the account that farm runs as.
        sudo_user: who became that account by sudo.
        terminal: e.g. ``/dev/pts/3``; None without one.
        ssh_client: the address the SSH session came from.
    """

    user: str
    sudo_user: str | None = None
    host: str = ""
    terminal: str | None = None
    ssh_client: str | None = None

    @property
    def name(self) -> str:
        """The person: who used sudo, else the account."""
        return self.sudo_user or self.user

    @classmethod
    def current(cls, environ: Mapping[str, str]) -> Operator:
        """Who runs this process."""
        client = (environ.get("SSH_CONNECTION") or environ.get("SSH_CLIENT") or "").split()
        return cls(
            user=_user(),
            sudo_user=environ.get("SUDO_USER") or None,
            host=socket.gethostname(),
            terminal=_terminal(),
            ssh_client=client[0] if client else None,
        )


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        pass
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.geteuid()}"


def _terminal() -> str | None:
    for descriptor in (0, 1, 2):
        try:
            return os.ttyname(descriptor)
        except OSError:
            continue
    return None
