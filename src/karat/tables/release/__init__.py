"""Records of gates, baselines, certificates and trends."""
