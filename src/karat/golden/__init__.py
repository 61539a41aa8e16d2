"""What is right: what a golden set is made of."""
