"""Public names of this module, loaded at first use."""

from dotphase.finite_d.datasets import count_sentences as count_sentences
from dotphase.finite_d.datasets import draw_dataset as draw_dataset
from dotphase.finite_d.datasets import position_vectors as position_vectors
from dotphase.finite_d.initialization import initial_weights as initial_weights
from dotphase.finite_d.initialization import resolve_start as resolve_start
from dotphase.finite_d.loss import project as project
from dotphase.finite_d.loss import reduce as reduce
from dotphase.finite_d.loss import token_products as token_products
from dotphase.finite_d.loss import value_and_gradient as value_and_gradient
from dotphase.finite_d.overlaps import token_overlaps as token_overlaps
from dotphase.finite_d.test_error import attention_error as attention_error
from dotphase.finite_d.test_error import linear_error as linear_error
from dotphase.finite_d.test_error import quadrature as quadrature
