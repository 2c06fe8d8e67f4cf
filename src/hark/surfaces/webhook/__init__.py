"""Webhooks: other programs send signed requests to the agent and receive its replies as requests."""
