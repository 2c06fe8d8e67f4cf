"""`hark skills`, and the sources of skills."""
