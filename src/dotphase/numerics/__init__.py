"""Numerics without attention: small matrices, proximal map, fixed points, quadrature."""
