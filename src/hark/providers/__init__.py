"""Model APIs, each behind its wire protocol."""
