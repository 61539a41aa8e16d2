"""Accounts, sign-in and tokens: pages."""
