"""Events and online metrics: tables."""
