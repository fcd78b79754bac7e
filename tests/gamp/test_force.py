from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from dotphase.finite_d.loss import limit_form
from dotphase.gamp import force
from dotphase.numerics.proximal_map import vmap_points


def test_sizes_of_blocks_do_not_matter(paper, rng, monkeypatch):
    """Nor what the last one is filled up with, nor sentences that do not count."""
    count, V = 400, 12.0 * jnp.ones((2, 1, 1))
    centre = rng.normal(size=(2, 1, count)) * 0.5
    targets = vmap_points(paper.teacher)(rng.normal(size=(2, 1, count)) * 0.5)
    form = vmap_points(partial(limit_form, paper))(targets)
    some = force.Sentences(form, jnp.where(jnp.arange(count) < 380, 1.0, 0.0))

    def found(block, count):
        monkeypatch.setattr(force, "BLOCK", block)
        centres = force.cut(jnp.asarray(centre)[..., :count])
        sentences = force.cut(jax.tree.map(lambda leaf: leaf[..., :count], some))
        tracks = [force.fresh(each) for each in centres]
        blocks = force.apply_force(paper, centres, V, sentences, tracks, jnp.asarray(3))
        sums = [jnp.asarray(sum(each[k] for each in blocks)) for k in (1, 2)]
        return len(blocks), force.join([each.g for each in blocks], count), *sums

    one, g, *sums = found(512, count)
    assert one == 1 and not np.any(g[..., 380:]) and np.all(g[..., :380])
    for asked, blocks in (((256, count), 2), ((512, 380), 1)):
        two, part, *others = found(*asked)
        assert two == blocks
        # Points that have settled are known to about the square of 1e-5.
        for mine, theirs in zip((g[..., :380], *sums), (part[..., :380], *others), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9)
