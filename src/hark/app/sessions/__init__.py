"""Sessions as surfaces and programs use them."""
