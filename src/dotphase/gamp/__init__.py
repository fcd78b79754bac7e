"""Generalised approximate message passing, beside its state evolution."""
