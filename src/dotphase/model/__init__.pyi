"""The names of this package, each declared here and nowhere else."""

from dotphase.model.definition import Attention as Attention
from dotphase.model.definition import Model as Model
