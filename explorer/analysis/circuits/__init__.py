"""Which parts of a model carry the difference between two texts: pairs, metrics, findings."""
