"""Simulated users: people who behave by a declared click behaviour over a golden set and runs.

What they draw is known, so a metric can be held against the truth. Nothing of it is evidence about
real people, and everything that comes out says that it is simulated.
"""
