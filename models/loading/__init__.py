"""A folder or file to a model, with every bound and every refusal; and out again."""
