"""Process trees that can be stopped completely, including all descendants."""
