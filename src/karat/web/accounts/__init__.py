"""Pages of accounts: sign-in, users, API tokens, audit log."""
