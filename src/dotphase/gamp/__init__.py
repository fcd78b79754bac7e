"""Generalized approximate message passing, and its state evolution."""
