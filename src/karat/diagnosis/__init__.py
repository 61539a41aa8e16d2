"""Diagnosis: slices of queries, rank changes, side-by-side rankings, contributions of retrievers."""
