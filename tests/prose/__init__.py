"""The prose linter: checks the English of docstrings, comments, test names, messages, pages and commit subjects."""
