"""The Textual app: screens, widgets, key map, command palette."""
