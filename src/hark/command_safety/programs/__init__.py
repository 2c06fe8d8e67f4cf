"""Models of known programs. Each analyzer predicts the effects of one program from its arguments."""
