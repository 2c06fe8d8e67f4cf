"""Tests of the documentation: links, settings, examples and commands."""
