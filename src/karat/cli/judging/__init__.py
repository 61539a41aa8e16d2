"""Judging: queues, and what people rate: commands."""
