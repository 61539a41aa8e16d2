"""Checking input files: reports."""
