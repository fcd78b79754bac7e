"""Models with a loss, labels and tokens of their own: what is refused, and what is worked out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.model import channels
from dotphase.model.derivatives import loss_derivatives
from dotphase.model.latent import Latent
from dotphase.model.symmetry import sign_flips
from dotphase.numerics.golden_section import golden_section_prox
from models import softmax


def field(h):
    return h[0, 0]


def told_field(h, a):
    return h[0, 0] ** 2


def square(x, y):
    return 0.5 * (x[0, 0] - y) ** 2


GOOD = {"teacher": field, "loss": square, "length": 1, "sigma": 1.0}
TWO = [[[1.0], [0.0]], [[0.0], [1.0]]]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"loss": lambda x, y: jnp.log(-jnp.abs(x[0, 0]))}, "loss"),
        ({"loss": lambda x, y: x}, "loss"),
        ({"loss": lambda x, y: y * x[0, 0]}, "loss"),
        ({"loss": lambda x: x[0, 0]}, "loss"),
        ({"loss": "squared"}, "loss"),
        ({"metric": lambda x, y: x[0]}, "metric"),
        ({"metric": lambda x, y: jnp.nan * y}, "metric"),
        ({"teacher": lambda h: jnp.inf * h}, "teacher"),
        ({"teacher": lambda h, z: z[0]}, "teacher"),
        ({"student": softmax}, "student"),
        ({"noise": -1}, "noise"),
        ({"proximal": "newton"}, "proximal"),
        ({"proximal": "search", "student_rank": 2}, "proximal"),
        ({"proximal": lambda omega, V, y: omega[0]}, "proximal"),
        ({"latent": "hidden"}, "latent"),
        ({"latent": lambda: Latent(TWO)}, "latent.loadings"),
        ({"latent": lambda: Latent(TWO, [0.5, 0.6])}, "latent.probabilities"),
        ({"latent": lambda: Latent(TWO, [1.5, -0.5])}, "latent.probabilities"),
        ({"latent": lambda: Latent(TWO, gram=[[-1.0]])}, "latent.gram"),
        ({"latent": lambda: Latent([[[1, 0]]], gram=[[1.0, 0.5], [0.1, 1.0]])}, "latent.gram"),
        ({"latent": lambda: Latent([[[1.0]]], gram=[[1.0]], teacher=[[2.0]])}, "latent.teacher"),
        ({"latent": lambda: Latent([[[1.0]]], teacher=[[0.1, 0.2]])}, "latent.teacher"),
        ({"latent": lambda: Latent([[1.0]])}, "latent.loadings"),
        ({"latent": lambda: Latent(lambda z: z)}, "latent.gram"),
        ({"correlation": [[2.0]]}, "correlation"),
        ({"length": 2, "correlation": [[1.0, 1.0], [1.0, 1.0]]}, "correlation"),
        ({"length": 2, "correlation": [[1.0, 2.0], [2.0, 1.0]]}, "correlation"),
        ({"loss": None, "teacher": softmax}, "student"),
        ({"loss": None, "student": softmax, "metric": square}, "metric"),
    ],
)
def test_bad_channels_are_refused_in_one_line(change, named):
    with pytest.raises(dp.InvalidInput) as caught:
        given = {name: value() if name == "latent" and callable(value) else value
                 for name, value in change.items()}  # fmt: skip
        dp.Model(**(GOOD | given))
    assert str(caught.value).startswith(named + " = ")
    assert "\n" not in str(caught.value)


def test_relatives_keep_the_channel():
    hidden = {"teacher": told_field, "latent": Latent([[[1.0]]])}
    model = dp.Model(**(GOOD | hidden), metric=square)
    other = model.replace(ridge=0.2)
    assert other.loss is square and other.metric is square and other.ridge == 0.2
    assert other.directions == 1 and not other.has_positions
    with pytest.raises(dp.InvalidInput):
        model.replace(has_positions=True)


def signs(model):
    return {(tuple(s), tuple(u)) for s, u in sign_flips(model)}


def test_symmetries_are_those_of_loss_and_labels_together(paper):
    assert signs(paper) == {((s,), (u,)) for s in (1.0, -1.0) for u in (1.0, -1.0)}
    both = {((1.0,), (1.0,)), ((-1.0,), (-1.0,))}
    # An odd teacher: the sign of the student follows it.
    assert signs(dp.load_model("logistic")) == both
    # Noise may change its sign with the field.
    assert signs(dp.load_model("ridge-regression", noise=0.5)) == both
    assert len(signs(dp.load_model("phase-retrieval"))) == 4
    # A direction that is aligned with the teacher tells its sign.
    even = dp.Model(told_field, loss=channels.intensity_loss, latent=Latent([[[1.0]]]))
    told = even.replace(latent=Latent([[[1.0]]], teacher=[[0.5]]))
    assert len(signs(even)) == 4 and len(signs(told)) == 2


def test_the_squared_loss_is_a_special_case(paper, rng):
    def loss(x, target):
        return 0.5 * jnp.sum((target - softmax(x)) ** 2 * paper.rho)

    own = paper.replace(student=None, loss=loss)
    both = jax.jit(lambda *given: [loss_derivatives(model)(*given) for model in (own, paper)])
    for one, other in zip(*both(rng.normal(size=2), rng.uniform(size=(2, 2))), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12, atol=1e-15)


def test_correlated_tokens_are_mixtures_of_independent_ones(paper, rng):
    model = paper.replace(sigma=[0.5, 0.8], correlation=[[1.0, -0.4], [-0.4, 1.0]])
    K = np.asarray(model.mixer)
    covariance = model.sigma[:, None] * model.correlation * model.sigma
    np.testing.assert_allclose(K @ np.diag(model.rho) @ K.T, covariance, atol=1e-15)
    x, target = rng.normal(size=2), rng.uniform(size=(2, 2))
    miss = target - np.asarray(softmax(K @ x[:, None]))
    value, slope, _ = jax.jit(loss_derivatives(model))(x, target)
    np.testing.assert_allclose(value, 0.5 * np.trace(miss @ covariance @ miss.T), rtol=1e-12)
    ahead, behind = (jax.jit(loss_derivatives(model))(x + step, target).value
                     for step in ([1e-5, 0], [-1e-5, 0]))  # fmt: skip
    np.testing.assert_allclose(slope[0], (ahead - behind) / 2e-5, rtol=1e-6)


@pytest.mark.parametrize("kind", ["hinge", "absolute"])
def test_proximal_maps_with_kinks_agree_with_a_search(kind, rng):
    loss, given = getattr(channels, kind), getattr(channels, f"{kind}_proximal")
    search = golden_section_prox(lambda x, y: loss(x[:, None], y))
    omega, V = rng.normal(0, 2, (64, 1)), rng.uniform(0.1, 3, (64, 1, 1))
    found = jax.jit(jax.vmap(lambda *point: search(*point, 1.0)))(omega, V)
    wanted = np.asarray(jax.jit(jax.vmap(lambda *point: given(*point, 1.0)))(omega[..., None], V))
    np.testing.assert_allclose(found, wanted[:, 0], atol=1e-6)


def test_hidden_states_have_their_probabilities():
    latent = Latent([[[1.0]], [[2.0]], [[4.0]]], [0.2, 0.0, 0.8])
    drawn = np.asarray(jax.jit(jax.vmap(latent.draw))(np.linspace(-2, 2, 41)[:, None]))[:, 0, 0]
    # The quantile of .2 is -.84.
    np.testing.assert_array_equal(drawn, np.where(np.linspace(-2, 2, 41) < -0.84, 1.0, 4.0))


def test_the_likeliest_class_is_the_largest_entry_and_drawn_ones_follow_the_row(rng):
    drawn = dp.load_model("attention-classes")
    sure = dp.load_model("attention-classes", labels="likeliest")
    h = rng.normal(size=(2, 1))
    row = np.asarray(sure.teacher.attention(h))
    np.testing.assert_array_equal(np.argmax(sure.teacher(h), axis=1), np.argmax(row, axis=1))
    labels = jax.vmap(lambda z: drawn.teacher(h, z))(rng.normal(size=(4096, 2)))
    np.testing.assert_allclose(np.mean(labels, axis=0), row, atol=5 * 0.5 / 64)


def test_affine_attention_reaches_its_population_floor():
    from dotphase.model.channels import affine_pooling

    length, strength = 3, 4.0
    mark = np.random.default_rng(0).normal(size=(400_000, length))
    mark[:, 0] += strength**0.5
    chosen = np.eye(length)[0]
    # Fields of values 1 at one token give its weight; scales of keys and values are free.
    basis = [np.ones_like(mark), mark]
    products = [[float(np.mean(a * b)) for b in basis] for a in basis]
    scales = np.linalg.solve(products, [float(np.mean(chosen * part)) for part in basis])
    weights = scales[0] + scales[1] * mark
    risk = float(np.mean(np.sum((chosen - weights) ** 2, axis=1)))
    assert risk == pytest.approx(
        (length - 1) * length / (length**2 + strength * (length - 1)), rel=0.01
    )
    x = np.stack([chosen, mark[0]], axis=1)
    assert float(affine_pooling(x)) == pytest.approx((1 + mark[0, 0]) / length)
