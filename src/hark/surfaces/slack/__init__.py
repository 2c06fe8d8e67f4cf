"""Slack: channels, threads and direct messages, over Socket Mode or HTTP."""
