"""Deep attention: layers of tied attention with skip connections and no values.

Layer l has one column of weights, with fields ``z_l = x Q_l/sqrt d``, and sees the tokens as the
layers below mix them,

    S_l = softmax(w_l w_l^T),   w_l = B_{l-1} z_l,   B_l = (S_l + c 1) B_{l-1},   B_0 = 1,

with the strength c of the skip connections (E. Troiani et al., arXiv:2502.00901). The result is the
attention S_K of the last layer, or the product B_K.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.model.attention import softmax_attention
from dotphase.model.definition import Model


class DeepAttention(eqx.Module):
    """Attention of several layers, one for each column of the fields."""

    skip: Float[Any, ""] = eqx.field(converter=np.asarray)  #: strength c of the skip connections
    #: True for the product B_K of all layers, False for the attention S_K of the last one
    product: bool = eqx.field(static=True, default=False)

    def __call__(self, h: Float[Array, "tokens layers"]) -> Float[Array, "tokens tokens"]:
        if self.product:
            return self.stack(h)
        return softmax_attention(self.hidden(h)[:, None])

    def hidden(self, h: Float[Array, "tokens layers"]) -> Float[Array, " tokens"]:
        """Fields ``w_K = B_{K-1} z_K`` of the last layer."""
        return self.stack(h[:, :-1]) @ h[:, -1]

    def stack(self, h: Float[Array, "tokens layers"]) -> Float[Array, "tokens tokens"]:
        """The product B of some layers; the unit matrix without layers."""
        B = jnp.eye(h.shape[0], dtype=h.dtype)
        for layer in range(h.shape[1]):
            B = softmax_attention(B @ h[:, layer : layer + 1]) @ B + self.skip * B
        return B


def require_layers(model: Model) -> str | None:
    """Return an objection to models that are not deep attention with the layers of its teacher."""
    if isinstance(model.student, DeepAttention) and model.student_rank == model.teacher_rank:
        return None
    return "needs deep attention with as many layers as its teacher"
