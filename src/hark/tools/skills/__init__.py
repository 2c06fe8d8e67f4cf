"""Skills: folders with instructions for special tasks."""
