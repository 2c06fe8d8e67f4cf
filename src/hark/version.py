"""The version of Hark."""

__version__ = "0.1.0"
