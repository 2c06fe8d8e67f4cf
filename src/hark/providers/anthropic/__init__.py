"""Anthropic's wire protocol: messages."""
