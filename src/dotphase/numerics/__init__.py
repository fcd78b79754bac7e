"""Numerics that know nothing of attention: small algebra, proximal map, fixed points, points."""
