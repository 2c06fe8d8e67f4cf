"""Skills: instructions for special work, in folders."""
