"""The workspace: stored runs, evaluations and comparisons, backup: commands."""
