"""Gates, baselines, certificates and trends: commands."""
