"""Files on disk: private files and folders, SQLite databases, tree walks and gitignore rules."""
