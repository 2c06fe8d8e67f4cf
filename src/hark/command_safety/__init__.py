"""What a shell command would do, as far as reading it can tell."""
