"""Hark's vocabulary as data types and interfaces (ports). This package has no I/O and no behaviour."""
