"""Diagnosis: slices of queries, rank changes, side-by-side rankings, what each retriever finds."""
