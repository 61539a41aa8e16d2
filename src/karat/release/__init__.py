"""May it ship: policies, and what they say."""
