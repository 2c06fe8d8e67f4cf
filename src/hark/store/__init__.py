"""Durable storage of sessions: inbox, journal, leases, bus and search."""
