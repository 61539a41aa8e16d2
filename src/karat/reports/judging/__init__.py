"""Judging: queues, and what people rate: reports."""
