"""What lasts: inbox, journal, leases and bus, behind one port each."""
