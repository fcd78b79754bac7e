"""Attention of extensive rank: width proportional to d, n = alpha d^2 sentences."""
