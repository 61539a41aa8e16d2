"""Files of judgments, runs, queries and documents."""
