"""Every stage of a forward pass: its values, its formula, one of its numbers explained."""
