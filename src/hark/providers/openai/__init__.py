"""OpenAI's two wire protocols: chat completions and responses."""
