"""Records of events and online metrics."""
