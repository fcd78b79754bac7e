"""The best that any learner can do with the data: ``dp.bayes.optimal``, ``dp.bayes.curve``."""

from dotphase.experiments.bayes import bayes_curve as curve
from dotphase.theory.bayes import bayes_optimal as optimal

__all__ = ["curve", "optimal"]
