"""Results to eyes: the same rows as a terminal table, JSON, CSV, Markdown, LaTeX or trec_eval's."""
