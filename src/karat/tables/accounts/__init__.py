"""Records of accounts."""
