"""The rule for answers, tested on every surface with the same texts."""
