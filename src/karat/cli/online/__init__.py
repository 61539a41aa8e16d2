"""Events and online metrics: commands."""
