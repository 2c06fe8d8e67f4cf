"""MCP servers: started once by the app, shared by all sessions."""
