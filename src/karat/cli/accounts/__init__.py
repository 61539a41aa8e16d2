"""Accounts, sign-in and tokens: commands."""
