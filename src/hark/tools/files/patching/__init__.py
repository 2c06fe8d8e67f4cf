"""Parsing patches and finding where their hunks apply."""
