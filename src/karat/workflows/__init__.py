"""The verbs: each a short function that reads like a sentence."""
