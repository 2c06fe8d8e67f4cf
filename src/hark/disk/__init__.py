"""Files on disk: private files and databases, safe names, ignore rules and tree walks."""
