"""Charts as plain Vega-Lite dictionaries, and the same for print."""
