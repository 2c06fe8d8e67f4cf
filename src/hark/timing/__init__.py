"""When to do something again: delays between retries, and rate limits."""
