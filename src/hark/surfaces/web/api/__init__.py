"""The HTTP API's endpoints."""
