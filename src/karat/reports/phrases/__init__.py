"""Wording of numbers and verdicts."""
