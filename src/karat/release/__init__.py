"""Release: policies and gates."""
