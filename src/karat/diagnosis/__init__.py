"""Where it failed and why: slices of queries, documents that moved, what each retriever finds."""
