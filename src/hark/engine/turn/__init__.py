"""One turn: its steps, model calls and tool calls."""
