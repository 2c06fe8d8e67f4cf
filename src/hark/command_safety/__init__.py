"""Static analysis of shell commands: predicts the effects of a command without running it."""
