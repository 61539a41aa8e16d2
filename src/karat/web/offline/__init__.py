"""Evaluating, comparing, explaining and fusing runs: pages."""
