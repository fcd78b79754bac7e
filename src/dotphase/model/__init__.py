"""Models: tokens, teacher, student and ridge, and the named models of the package.

Names load at first use, so that the names of models are listed without importing JAX.
"""

from dotphase._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
