"""The tools that the model can call."""
