"""Gates, baselines, certificates and trends."""
