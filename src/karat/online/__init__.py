"""What users did: sessions, search intents, attribution, metrics, and simulated users."""
