"""Transports to MCP servers."""
