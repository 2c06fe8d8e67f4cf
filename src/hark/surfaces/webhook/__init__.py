"""Webhooks: other programs say something to the agent by signed requests, and hear what it says."""
