"""Delays between retries, and rate limits."""
