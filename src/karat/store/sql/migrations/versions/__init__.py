"""The versions of the schema. The code of a released version must not change."""
