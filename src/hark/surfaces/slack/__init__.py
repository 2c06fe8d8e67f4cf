"""Slack: messages of channels, threads and direct messages, by Socket Mode or HTTP."""
