"""Live events over HTTP."""
