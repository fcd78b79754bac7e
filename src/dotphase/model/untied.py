"""A student with separate queries and keys.

``S(h) = softmax(h_Q h_K^T)`` is one more function of projected tokens, with the columns of
Q and K side by side, ``[Q, K]`` in R^{d x 2r}. An untied student is therefore a `Model`
like any other; training, message passing and the theory apply to it as they are, and the
ridge penalises both parts.
"""

from __future__ import annotations

from dotphase.config import validation
from dotphase.model.attention import untied_attention
from dotphase.model.definition import Model


def untied(model: Model, rank: int = 1) -> Model:
    """The same model with an untied softmax student of rank r, ``[Q, K]`` of 2r columns.

    Parameters
    ----------
    model : Model
        Its teacher and data are kept, its student is replaced.
    rank : int
        Columns r of the queries, and of the keys.

    Examples
    --------
    >>> dp.untied(dp.positional_semantic()).student_rank
    2
    """
    columns = 2 * validation.integer("rank", rank, at_least=1)
    return model.replace(student=untied_attention, student_rank=columns)


def is_untied(model: Model) -> bool:
    """Whether the student has separate queries and keys."""
    return model.student is untied_attention
