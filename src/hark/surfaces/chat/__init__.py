"""Chat platforms: many people, one promise."""
