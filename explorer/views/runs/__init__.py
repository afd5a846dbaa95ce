"""The Runs page: the table of runs, their curves, races and sweeps, and where they train."""
