"""The verbs of karat online."""
