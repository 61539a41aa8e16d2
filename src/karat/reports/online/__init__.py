"""Events and online metrics: reports."""
