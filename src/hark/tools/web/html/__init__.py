"""Converts HTML to Markdown for a model."""
