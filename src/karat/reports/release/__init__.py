"""Gates, baselines, certificates and trends: reports."""
