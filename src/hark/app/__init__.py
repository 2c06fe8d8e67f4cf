"""Settings, the one place where the parts meet, and the exit."""
