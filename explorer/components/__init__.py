"""Canvas views that answer the pointer without the server."""
