"""Files of events."""
