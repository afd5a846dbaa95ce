"""Inside training: one update taken apart, and what training does to the model's insides."""
