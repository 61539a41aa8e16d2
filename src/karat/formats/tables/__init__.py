"""Files of judgments, runs, queries, documents and query logs."""
