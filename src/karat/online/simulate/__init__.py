"""Simulated users: people who behave by a declared click behaviour over a golden set and runs.

What they draw is known, so a metric can be compared with the truth. It is not evidence about real
users, and everything made of it is marked as simulated.
"""
