"""Traces, and what is diagnosed from them."""
