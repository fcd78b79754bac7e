"""Public names of this module, loaded at first use."""

from dotphase.histogram.experiment import run as run
from dotphase.histogram.free_networks import Emergence as Emergence
from dotphase.histogram.free_networks import emergence as emergence
from dotphase.histogram.free_networks import release as release
from dotphase.histogram.interpolation import LossBetween as LossBetween
from dotphase.histogram.interpolation import loss_between as loss_between
from dotphase.histogram.introspect import Statistics as Statistics
from dotphase.histogram.introspect import attention as attention
from dotphase.histogram.introspect import attention_maps as attention_maps
from dotphase.histogram.introspect import predict as predict
from dotphase.histogram.introspect import statistics as statistics
from dotphase.histogram.network import Network as Network
from dotphase.histogram.network import select as select
from dotphase.histogram.result import Experiment as Experiment
from dotphase.histogram.settings import ExperimentSettings as ExperimentSettings
from dotphase.histogram.settings import HistogramSettings as HistogramSettings
from dotphase.histogram.task import Task as Task
from dotphase.histogram.task import draw as draw
from dotphase.histogram.task import parse as parse
from dotphase.histogram.weights import load_network as load_network
from dotphase.histogram.weights import save_network as save_network
from dotphase.histogram.weights import shipped as shipped
