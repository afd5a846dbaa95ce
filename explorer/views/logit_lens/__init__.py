"""The parts of the page “Logit lens”."""
