"""Gates, baselines, certificates and trends: pages."""
