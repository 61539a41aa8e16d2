"""Pages of golden sets: queries, sampling, pools, agreement, editions."""
