"""Accounts, sign-in and tokens: tables."""
