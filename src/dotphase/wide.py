"""Attention of extensive rank: width proportional to d, ``n = alpha d^2`` sentences."""

from dotphase.extensive.bayes import bayes
from dotphase.extensive.curves import compare, curve
from dotphase.extensive.solve import solve
from dotphase.extensive.training import train
from dotphase.extensive.transitions import onset, phase_diagram, recovery

__all__ = ["bayes", "compare", "curve", "onset", "phase_diagram", "recovery", "solve", "train"]
