"""Golden sets: queries, sampling, pools, agreement, editions: tables."""
