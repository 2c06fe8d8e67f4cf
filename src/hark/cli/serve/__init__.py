"""The gateway, `hark serve`."""
