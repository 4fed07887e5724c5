"""Waiting, after a reset or a retry, until an agent has claimed the step."""

from __future__ import annotations
from farmtui.cli.call import Call


def wait_for_claim(call: Call, run_id: str, step_id: str) -> str:
    return ""
