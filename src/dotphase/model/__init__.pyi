"""Declarations of the names of this package, loaded at first use."""

from dotphase.model.definition import Attention as Attention
from dotphase.model.definition import Model as Model
