"""How numbers and verdicts are put into words."""
