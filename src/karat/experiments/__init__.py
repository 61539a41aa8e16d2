"""Experiments: arms, their evidence and health, effects and verdicts; assignment, interleaving."""
