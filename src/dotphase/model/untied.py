"""A student with separate queries and keys.

``S(h) = softmax(h_Q h_K^T)`` is a function of projected tokens, with the columns of Q and K side by
side, ``[Q, K]`` in R^{d x 2r}. Training, message passing and the theory therefore apply to an
untied student unchanged; the ridge penalizes both parts.
"""

from dotphase.config import validation
from dotphase.model.attention import untied_attention
from dotphase.model.definition import Model


def untied(model: Model, rank: int = 1) -> Model:
    """Replace the student by an untied softmax student of rank r, ``[Q, K]`` of 2r columns.

    Parameters
    ----------
    model : Model
        The model with the teacher and the data.
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
    """True if the student has separate queries and keys."""
    return model.student is untied_attention
