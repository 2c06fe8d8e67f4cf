"""Random text for all parsers and renderers of untrusted text."""
