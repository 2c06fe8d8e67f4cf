"""What Hark costs, beside a bare loop that does the same work in the same run."""
