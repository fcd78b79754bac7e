"""Classes of results, for annotations and ``isinstance``, and helpers to report results."""

from dotphase._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
