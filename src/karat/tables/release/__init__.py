"""Gates, baselines, certificates and trends: tables."""
