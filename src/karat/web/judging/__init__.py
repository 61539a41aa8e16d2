"""Pages for judging."""
