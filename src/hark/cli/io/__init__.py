"""Standard input, printing and prompts of the command line."""
