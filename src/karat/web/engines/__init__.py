"""Search engines: pages."""
