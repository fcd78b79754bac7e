"""The histogram task: a small transformer that counts in one of two ways.

import dotphase as dp

result = dp.histogram.run("both", runs=1, epochs=20, target=0.998)
dp.histogram.attention(result.network("semantic"), "BBCCDDBBBB")
dp.histogram.predict(dp.histogram.shipped("positional"), "BBCCDDBBBB")
"""

from dotphase.histogram.experiment import run
from dotphase.histogram.free_networks import Emergence, emergence, release
from dotphase.histogram.interpolation import LossBetween, loss_between
from dotphase.histogram.introspect import (
    Statistics,
    attention,
    attention_maps,
    predict,
    statistics,
)
from dotphase.histogram.network import Network, select
from dotphase.histogram.result import Experiment
from dotphase.histogram.settings import ExperimentSettings, HistogramSettings
from dotphase.histogram.task import Task, draw, parse
from dotphase.histogram.weights import load_network, save_network, shipped

__all__ = [
    "Emergence",
    "Experiment",
    "ExperimentSettings",
    "HistogramSettings",
    "LossBetween",
    "Network",
    "Statistics",
    "Task",
    "attention",
    "attention_maps",
    "draw",
    "emergence",
    "load_network",
    "loss_between",
    "parse",
    "predict",
    "release",
    "run",
    "save_network",
    "select",
    "shipped",
    "statistics",
]
