"""`hark skills`."""
