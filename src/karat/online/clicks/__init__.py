"""Click models: how likely a shown document is clicked, by what it is and where it stood."""
