"""The Circuits page: two texts that differ in one word, and the heads that carry the difference."""
