"""Files on disk: private files and folders, SQLite databases, safe names, tree walks and gitignore rules."""
