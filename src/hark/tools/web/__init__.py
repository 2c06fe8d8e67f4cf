"""Reading the web: fetch and search."""
