"""Events and online metrics: pages."""
