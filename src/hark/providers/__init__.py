"""Model APIs, one module or package per wire protocol."""
