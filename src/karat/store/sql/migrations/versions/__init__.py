"""The versions of the schema. What is released here is never edited again."""
