"""Diagnosis: pages."""
