"""Processes: started in a tree of their own, found by their cookie, ended whole."""
