"""Records of golden sets: agreement, import and export."""
