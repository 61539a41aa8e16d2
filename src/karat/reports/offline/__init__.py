"""Evaluating, comparing, explaining and fusing runs: reports."""
