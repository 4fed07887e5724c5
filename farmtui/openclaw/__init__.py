"""OpenClaw: its configuration, gateway, command line, stores on disk and cron jobs."""
