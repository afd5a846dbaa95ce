"""The bottom of the app: processes, locks, files, limits, and work that others can interrupt."""
