"""HTML to Markdown that a model reads well."""
