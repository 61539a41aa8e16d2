"""The worked example: search the documentation of Python's own standard library."""
