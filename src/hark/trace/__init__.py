"""A turn's trace, read from its journal, and its renderers."""
