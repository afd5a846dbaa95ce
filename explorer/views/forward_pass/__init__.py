"""The parts of the pages “Forward pass” and “Logit lens”."""
