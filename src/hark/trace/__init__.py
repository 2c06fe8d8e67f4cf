"""Turn traces: read from the session's journal and rendered as text, HTML, JSON or OpenTelemetry spans."""
