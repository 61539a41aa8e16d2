"""Diagnosis: commands."""
