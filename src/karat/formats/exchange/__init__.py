"""Formats of other tools: judgments, queries and rankings."""
