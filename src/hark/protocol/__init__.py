"""The words of Hark as data and ports: no I/O, no behaviour."""
