"""Diagnosis: traces, failure modes, and what fixes are worth."""
