"""Experiments: plans, effects, health and verdicts."""
