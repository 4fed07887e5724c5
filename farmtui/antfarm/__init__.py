"""Antfarm's own data: its database, event log, progress files and workflow definitions."""
