"""Judging: queues, and what people rate: pages."""
