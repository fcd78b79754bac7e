"""State evolution: the model in the limit of large dimension."""
