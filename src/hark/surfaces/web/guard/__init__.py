"""Access control: tokens, login cookies, and the allowed hosts and origins."""
