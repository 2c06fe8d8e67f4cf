"""The checks behind `hark doctor` and `/doctor`."""
