"""The exact learning dynamics: gradient descent at every step, in the limit of large d."""
