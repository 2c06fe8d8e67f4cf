"""`hark serve`."""
