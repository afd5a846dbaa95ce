"""The Training page: the form, the list of runs, the live run, and its attention as it forms."""
