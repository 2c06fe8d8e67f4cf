"""The agent over HTTP: its API, its events, an OpenAI-compatible API, and the files of its page."""
