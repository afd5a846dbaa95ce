"""What `python -m explorer` does: one module for each kind of command."""
