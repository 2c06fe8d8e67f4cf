"""Benchmarks for Hark. Each compares Hark with a bare loop that does the same work in the same run."""
