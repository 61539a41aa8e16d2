"""One writer for each medium."""
