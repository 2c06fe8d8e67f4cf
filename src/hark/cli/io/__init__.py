"""Standard input, standard output and prompts of the command line."""
