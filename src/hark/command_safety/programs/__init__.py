"""What each known program does with its arguments."""
