"""The histogram task: one small transformer, two ways to count.

import dotphase as dp

result = dp.histogram.experiment(mechanism="both", runs=1, epochs=20, target=0.998)
dp.histogram.attention(result.network("semantic"), "BBCCDDBBBB")
dp.histogram.predict(dp.histogram.shipped("positional"), "BBCCDDBBBB")
"""

from dotphase.histogram.emergence import Emergence, emergence, load_emergence
from dotphase.histogram.experiment import experiment
from dotphase.histogram.introspect import (
    Statistics,
    attention,
    attention_maps,
    predict,
    statistics,
)
from dotphase.histogram.landscape import Landscape, landscape
from dotphase.histogram.network import Network, select
from dotphase.histogram.release import release
from dotphase.histogram.result import Experiment, load_experiment
from dotphase.histogram.task import Task, draw, parse
from dotphase.histogram.weights import load_network, save_network, shipped

__all__ = [
    "Emergence",
    "Experiment",
    "Landscape",
    "Network",
    "Statistics",
    "Task",
    "attention",
    "attention_maps",
    "draw",
    "emergence",
    "experiment",
    "landscape",
    "load_emergence",
    "load_experiment",
    "load_network",
    "parse",
    "predict",
    "release",
    "save_network",
    "select",
    "shipped",
    "statistics",
]
