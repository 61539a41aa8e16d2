"""Online metrics, event import and watching."""
