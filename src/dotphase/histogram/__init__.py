"""The histogram task: one small transformer, two ways to count.

import dotphase as dp

result = dp.histogram.run(mechanism="both", runs=1, epochs=20, target=0.998)
dp.histogram.attention(result.network("semantic"), "BBCCDDBBBB")
dp.histogram.predict(dp.histogram.shipped("positional"), "BBCCDDBBBB")
"""

from dotphase.histogram.between import LossBetween, loss_between
from dotphase.histogram.free import Emergence, emergence, load_emergence, release
from dotphase.histogram.introspect import (
    Statistics,
    attention,
    attention_maps,
    predict,
    statistics,
)
from dotphase.histogram.mechanisms import run
from dotphase.histogram.network import Network, select
from dotphase.histogram.result import Experiment, load
from dotphase.histogram.task import Task, draw, parse
from dotphase.histogram.weights import load_network, save_network, shipped

__all__ = [
    "Emergence",
    "Experiment",
    "LossBetween",
    "Network",
    "Statistics",
    "Task",
    "attention",
    "attention_maps",
    "draw",
    "emergence",
    "load",
    "load_emergence",
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
