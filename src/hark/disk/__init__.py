"""Files on disk: private files and folders, and SQLite databases."""
