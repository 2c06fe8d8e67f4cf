"""What a shell command would do: parsed and followed, never run."""
