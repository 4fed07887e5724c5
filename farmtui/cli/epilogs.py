"""What stands below the help of each command: examples, and what its exit code says beyond the usual."""

from __future__ import annotations

from collections.abc import Mapping

_EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "runs": (
        "farm runs --lane human,failed",
        "farm runs --json --limit 0 | jq '.runs[] | select(.workflow == \"bug-fix\")'",
    ),
    "show": ("farm show 14", "farm show 662e --full", "farm show 14 --json | jq -r '.steps[-1].output'"),
    "medic": (
        "farm medic",
        "farm medic --json | jq '.findings[] | {check, message}'",
        "farm medic --fix stale-claim --dry-run",
        "farm medic --fix orphaned-crons --yes",
    ),
    "escalations": (
        "farm escalations",
        "farm escalations --json | jq '.escalations[] | select(.acknowledged | not)'",
    ),
    "crons": ("farm crons", "farm crons delete --orphaned --dry-run"),
    "crons delete": (
        "farm crons delete 735f70b6 --dry-run",
        "farm crons delete --orphaned --workflow meadow --yes",
    ),
    "journal": ("farm journal --limit 5",),
    "doctor": ("farm doctor", "farm doctor --state-dir /srv/openclaw"),
    "reset": ("farm reset 14 implement --dry-run", "farm reset 14 implement --yes --wait"),
    "resolve": (
        "farm resolve 14 --retry --guidance 'Use the staging database.'",
        "farm resolve 14 --retry --guidance - --yes < guidance.txt",
    ),
    "ack": ("farm ack 14 --note 'Known; waits for the new API key.'",),
    "undo": ("farm undo --dry-run", "farm undo 20260215T051539-3f1c"),
    "demo": ("farm demo", "farm demo --keep /tmp/farm-demo"),
}
_NOTES: Mapping[str, str] = {
    "medic": "It leaves with 1 where something was found; with 3 where nothing was,\n"
    "but a check could not be made.",
    "escalations": "It leaves with 0 whether or not anybody is waited for.",
    "doctor": "It leaves with 3 where something could not be reached.",
    "reset": "With --wait it leaves with 1 where nobody claimed the step.",
    "resolve": "With --wait it leaves with 1 where nobody claimed the step.",
}


def epilog(command: str) -> str:
    """The epilog of a command's help."""
    lines = ["Examples:", *(f"  {example}" for example in _EXAMPLES[command])]
    if command in _NOTES:
        lines += ["", _NOTES[command]]
    return "\n".join(lines)
