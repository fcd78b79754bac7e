"""Further analyses: ends of branches, landscapes, attention matrices, special models."""

from dotphase._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
