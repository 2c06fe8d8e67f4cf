"""The editor surface: the Agent Client Protocol over stdio."""
