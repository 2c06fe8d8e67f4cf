"""MCP servers, which the app starts once and all sessions share."""
