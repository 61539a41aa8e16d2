"""Judging: queues and ratings."""
