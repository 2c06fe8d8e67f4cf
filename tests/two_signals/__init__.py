"""Two signals at random instants: no process stays, the terminal is restored, and the exit code is truthful."""
