"""Speech to text before the inbox, and back."""
