"""Evaluating, comparing, explaining and fusing runs: commands."""
