"""Forces of the proximal map in blocks of sentences."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from dotphase.finite_d.loss import limit_form
from dotphase.gamp import force
from dotphase.numerics.proximal_map import vmap_points


def test_the_size_of_blocks_does_not_matter(paper, rng, monkeypatch):
    """Neither do padding and unused sentences."""
    count, V = 400, 12.0 * jnp.ones((2, 1, 1))
    center = jnp.asarray(rng.normal(size=(2, 1, count)) * 0.5)
    targets = vmap_points(paper.teacher)(rng.normal(size=(2, 1, count)) * 0.5)
    form = vmap_points(partial(limit_form, paper))(targets)
    data = force.Sentences(form, jnp.where(jnp.arange(count) < 380, 1.0, 0.0))

    def forces(block, count):
        monkeypatch.setattr(force, "BLOCK", block)
        centers = force.split_blocks(center[..., :count])
        sentences = force.split_blocks(jax.tree.map(lambda leaf: leaf[..., :count], data))
        initial = [force.initial_prox_state(part) for part in centers]
        blocks = force.apply_force(paper, centers, V, sentences, initial, jnp.asarray(3))
        response, two_minima = (jnp.asarray(sum(part[k] for part in blocks)) for k in (1, 2))
        g = force.join_blocks([part.g for part in blocks], count)
        return len(blocks), g, response, two_minima

    blocks, g, *sums = forces(512, count)
    assert blocks == 1 and not np.any(g[..., 380:]) and np.all(g[..., :380])
    for (block, sentences), expected in (((256, count), 2), ((512, 380), 1)):
        blocks, other_g, *other_sums = forces(block, sentences)
        assert blocks == expected
        pairs = zip((g[..., :380], *sums), (other_g[..., :380], *other_sums), strict=True)
        for value, other in pairs:
            # Converged points have an error of about the square of 1e-5.
            np.testing.assert_allclose(value, other, rtol=1e-7, atol=1e-9)
