"""The Models page: the list of models, forms to open another, and six views of one model."""
