"""OpenAI's two wire protocols: Chat Completions and Responses."""
