"""Checks: pure functions from (state, now) to findings."""
