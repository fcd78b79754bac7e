"""Dynamical mean-field theory: gradient descent at every step, in the limit of large d."""
