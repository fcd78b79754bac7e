"""Implementation of random keys, without an import of JAX."""

#: Implementation of all random keys, recorded in the provenance of results. Its numbers do not
#: depend on how arrays are split over devices.
PRNG = "threefry2x32"
