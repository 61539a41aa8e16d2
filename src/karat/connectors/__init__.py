"""Asking live services, one kind to a file."""
