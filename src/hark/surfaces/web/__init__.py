"""The web surface: the HTTP API, live events, an OpenAI-compatible API, and the web page."""
