"""What figures share: the look, and the parts that they are drawn from."""
