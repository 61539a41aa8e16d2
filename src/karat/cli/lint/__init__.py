"""Checking input files: commands."""
