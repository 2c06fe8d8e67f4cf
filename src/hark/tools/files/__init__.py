"""Tools that read, write, edit, patch, list, search and view files."""
