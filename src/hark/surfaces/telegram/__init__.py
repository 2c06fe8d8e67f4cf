"""Telegram: private chats, groups and topics, through the Bot API."""
