"""What other tools write and read: judgments, queries and rankings, to karat's tables and back."""
