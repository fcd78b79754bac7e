"""Declarations of the names of this package, loaded at first use."""

from dotphase.model import channels as channels
from dotphase.model import deep as deep
from dotphase.model import paper as paper
from dotphase.model.definition import Attention as Attention
from dotphase.model.definition import Model as Model
