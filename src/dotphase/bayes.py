"""Bayes-optimal learners: ``dp.bayes.optimal`` and ``dp.bayes.curve``.

These are for the teachers of the paper, in closed form, and for deep attention, whose layers are
learned from ``layer_thresholds`` on; ``numerical`` and ``weak_recovery`` are for all teachers.
"""

from dotphase.experiments.theory.bayes import bayes_curve as curve
from dotphase.theory.bayes import alpha_of_overlap, transitions
from dotphase.theory.bayes import bayes_optimal as optimal
from dotphase.theory.layered_posterior import layer_thresholds
from dotphase.theory.numerical_posterior import numerical_bayes as numerical
from dotphase.theory.numerical_posterior import weak_recovery

__all__ = [
    "alpha_of_overlap",
    "curve",
    "layer_thresholds",
    "numerical",
    "optimal",
    "transitions",
    "weak_recovery",
]
