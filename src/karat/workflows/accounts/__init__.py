"""Accounts, sign-in and tokens."""
