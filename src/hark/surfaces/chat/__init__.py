"""Chat platforms: the code that all of them share."""
