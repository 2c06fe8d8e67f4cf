"""Voice services, built from the settings when they are needed."""
