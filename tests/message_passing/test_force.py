from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from dotphase._numerics.prox import over_points
from dotphase.finite.loss import limit_form
from dotphase.message_passing import force


def test_sizes_of_blocks_do_not_matter(paper, rng, monkeypatch):
    """Nor what the last one is filled up with, nor sentences that do not count."""
    count, V = 400, 12.0 * jnp.ones((2, 1, 1))
    centre = rng.normal(size=(2, 1, count)) * 0.5
    targets = over_points(paper.teacher)(rng.normal(size=(2, 1, count)) * 0.5)
    form = over_points(partial(limit_form, paper))(targets)
    some = force.Sentences(form, jnp.where(jnp.arange(count) < 380, 1.0, 0.0))

    def found(block):
        monkeypatch.setattr(force, "BLOCK", block)
        centres = force.cut(jnp.asarray(centre))
        tracks = [force.fresh(each) for each in centres]
        blocks = force.apply_force(paper, centres, V, force.cut(some), tracks, jnp.asarray(3))
        sums = [jnp.asarray(sum(each[k] for each in blocks)) for k in (1, 2)]
        return len(blocks), force.join([each.g for each in blocks], count), *sums

    (one, *whole), (two, *parts) = found(512), found(256)
    assert (one, two) == (1, 2)
    assert not np.any(whole[0][..., 380:]) and np.all(whole[0][..., :380])
    for mine, theirs in zip(*map(jax.tree.leaves, (whole, parts)), strict=True):
        # Points that have settled are known to about the square of 1e-5.
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)
