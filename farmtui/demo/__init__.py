"""A small farm that really runs, for `farm demo`, scripts and tests.

`run.demo_farm(keep)` is the running farm as a context manager, whose `paths` and `environ` a console
is opened with; `run.run_headless(keep, seconds=…)` runs it without one. It knows no user interface.
"""
