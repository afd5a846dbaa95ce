"""The parts of the page “Interventions”."""
