"""The parts of the pages on attention: maps, heads, masks, query and key, step by step."""
