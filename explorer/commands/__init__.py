"""The commands of `python -m explorer`, one module for each kind of command."""
