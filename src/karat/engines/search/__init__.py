"""Live search engines: one adapter a kind, over plain HTTP or SQL."""
