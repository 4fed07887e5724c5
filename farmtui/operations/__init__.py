"""What an operator can do: plan, preview, apply, journal, undo."""
