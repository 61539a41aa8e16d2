"""Diagnosis as tables, text and pages."""
