"""Checking input files."""
