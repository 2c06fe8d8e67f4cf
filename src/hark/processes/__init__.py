"""Process trees that end completely."""
