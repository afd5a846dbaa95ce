"""The reader's interventions as plain data and as text."""
