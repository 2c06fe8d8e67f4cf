"""Files: read, write, edit, patch, list, search, view."""
