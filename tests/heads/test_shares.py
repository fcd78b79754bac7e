"""Shares of synthetic heads whose population is enumerated exactly, nulls, masks, streams."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.errors import InvalidInput
from dotphase.heads import ShareSettings
from dotphase.heads.collect import collect
from dotphase.heads.shares import SHARES, _factor_shares
from dotphase.heads.source import BLOCKS, as_array, chunks
from dotphase.histogram.introspect import _run
from dotphase.numerics.statistics import jackknife_error
from dotphase.runtime.precision import use_precision
from result_checks import assert_is_a_result

LENGTH, SYMBOLS, SENTENCES = 4, 3, 640
#: Weights of the positional part, the semantic part and noise.
MIXTURES = [(k / 10, 1 - k / 10, 0.0) for k in range(11)]
MIXTURES += [(0.4, 0.4, 0.2), (0.25, 0.25, 0.5), (0.5, 0, 0.5), (0, 0.5, 0.5), (0, 0, 1)]
SEMANTIC, MIXED, POSITIONAL, NOISE = 0, 5, 10, 15


def scores_of(tokens, noise, rng):
    """Scores of one head for each mixture."""
    heads = len(MIXTURES)
    matrix, kernel = (rng.normal(size=(heads, size, size)) for size in (LENGTH, SYMBOLS))
    by_token = np.moveaxis(kernel[:, tokens[:, :, None], tokens[:, None, :]], 0, 1)
    p, s, z = np.sqrt(MIXTURES).T[..., None, None]
    return p * matrix + s * by_token + z * noise


def exact_shares(seed):
    """Shares of the population: all sentences, and the variance of centered noise."""
    tokens = np.array(list(itertools.product(range(SYMBOLS), repeat=LENGTH)))
    x = scores_of(tokens, 0.0, np.random.default_rng(seed))
    x -= x.mean(axis=-1, keepdims=True)
    noise = np.array([z for *_, z in MIXTURES]) * (1 - 1 / LENGTH)
    variance = (x**2).mean(axis=(0, 2, 3)) + noise
    positions = np.arange(LENGTH**2).reshape(1, LENGTH, LENGTH) + 0 * tokens[:, :1, None]
    pairs = SYMBOLS * tokens[:, :, None] + tokens[:, None, :]
    explained = {}
    groupings = {"positional": positions, "semantic": pairs, "both": 100 * positions + pairs}
    for name, groups in groupings.items():
        entries = np.moveaxis(x, 1, -1).reshape(-1, len(MIXTURES))
        _, slot, counts = np.unique(groups, return_inverse=True, return_counts=True)
        sums = np.zeros((len(counts), len(MIXTURES)))
        np.add.at(sums, slot.reshape(-1), entries)
        explained[name] = (sums**2 / counts[:, None]).sum(axis=0) / len(entries) / variance
    both = explained.pop("both")
    return explained | {"interaction": both - sum(explained.values()), "rest": 1 - both}


def sentences(seed):
    """Scores and tokens; heads have matrices of their own."""
    rng = np.random.default_rng(100 + seed)
    tokens = rng.integers(SYMBOLS, size=(SENTENCES, LENGTH))
    noise = rng.normal(size=(SENTENCES, len(MIXTURES), LENGTH, LENGTH))
    return scores_of(tokens, noise, np.random.default_rng(seed)), tokens


@pytest.fixture(scope="module")
def data():
    scores, tokens = sentences(0)
    return np.asarray(jax.nn.softmax(scores, axis=-1)), tokens


@pytest.fixture(scope="module")
def heads(data):
    return dp.heads.shares(*data)


def test_known_shares_are_recovered_within_their_errors():
    settings, deviations = ShareSettings(scores=True, symbols=SYMBOLS), []
    for seed in range(15):
        with use_precision(np.float32):
            parts = chunks(*sentences(seed), None, None, settings)
            values, _ = _factor_shares(collect(parts, settings))
        for name, exact in exact_shares(seed).items():
            error = np.maximum(jackknife_error(values[name][1:]), 1e-5)
            deviations.append((values[name][0] - exact) / error)
    # 240 heads. A t distribution of 31 degrees has 94.6% within two errors; three errors are .04.
    assert abs(np.mean(np.abs(deviations) < 2) - 0.946) < 0.04
    assert np.abs(deviations).max() < 6 and abs(np.mean(deviations)) < 0.3


def test_shares_add_to_one(heads):
    total = heads.positional + heads.semantic + heads.interaction + heads.rest
    np.testing.assert_allclose(total, 1, atol=1e-12)
    assert set(heads.stderr) == set(SHARES)


def test_verdicts_of_pure_and_mixed_heads(heads):
    verdicts = heads.verdict[[SEMANTIC, MIXED, POSITIONAL, NOISE]].tolist()
    assert verdicts == ["semantic", "mixed", "positional", "neither"]


def test_distances_vanish_for_the_right_model(heads):
    positional, semantic = heads.distance["positional"], heads.distance["semantic"]
    assert positional[POSITIONAL] < 1e-6 < 0.1 < positional[SEMANTIC]
    assert semantic[SEMANTIC] < 1e-4 < 0.1 < semantic[POSITIONAL]
    assert min(positional[NOISE], semantic[NOISE]) > 0.2


def test_nulls_hold():
    rng = np.random.default_rng(5)
    tokens = rng.integers(4, size=(64, 4))
    scores = rng.normal(size=(64, 400, 4, 4))
    scores[:, 200:] += 2 * rng.normal(size=(200, 4, 4))  # these have no semantic share
    heads = dp.heads.shares(scores, tokens, scores=True)
    rejected = {name: heads.p_value[name] <= 0.05 for name in heads.p_value}
    assert abs(rejected["semantic"].mean() - 0.05) < 0.033  # three errors
    assert abs(rejected["positional"][:200].mean() - 0.05) < 0.047
    assert rejected["positional"][200:].all()
    assert abs(heads.null["positional"]).max() < 0.02


def test_shipped_networks_have_the_shares_of_their_mechanism():
    tokens = dp.histogram.draw(dp.histogram.Task(samples=450), seed=7).train[:300]
    networks = [dp.histogram.shipped(name) for name in ("positional", "semantic")]
    attention = np.stack([_run(network, tokens).attention for network in networks], axis=1)
    heads = dp.heads.shares(attention, tokens, diagonal=False, nulls=19)
    assert heads.verdict.tolist() == ["positional", "semantic"]
    np.testing.assert_allclose(heads.positional, [1, 0], atol=3e-3)
    np.testing.assert_allclose(heads.semantic, [0, 1 - 1 / 9], atol=2e-2)
    # On the diagonal positions and tokens are confounded; the verdict remains.
    with_diagonal = dp.heads.shares(attention, tokens, nulls=19)
    assert with_diagonal.verdict.tolist() == ["positional", "semantic"]
    assert (with_diagonal.interaction < -0.5).all()


def test_masked_keys_do_not_enter(data, heads):
    attention, tokens = data
    causal = np.tril(np.ones((LENGTH, LENGTH), bool))
    cut = np.where(causal, attention, 0)
    cut /= cut.sum(axis=-1, keepdims=True)
    inferred = dp.heads.shares(cut, tokens, nulls=19)
    explicit = dp.heads.shares(np.where(causal, cut, 0.3), tokens, causal, nulls=19)
    np.testing.assert_array_equal(inferred.semantic, explicit.semantic)
    # Padding beside a causal mask: keys without any weight are masked too.
    real = np.arange(LENGTH) < np.where(np.arange(SENTENCES) % 3, LENGTH, 2)[:, None]
    every = causal & real[:, None] & real[:, :, None]
    padded = np.where(every[:, None], attention, np.where(causal, 0.3, 0))
    padded /= np.where(every[:, None], padded, 0).sum(axis=-1, keepdims=True) + 1e-30
    padding = dp.heads.shares(padded, tokens, real, nulls=19)
    complete = dp.heads.shares(padded, tokens, every, nulls=19)
    np.testing.assert_array_equal(padding.semantic, complete.semantic)
    assert abs(padding.positional[POSITIONAL] - 1) < 1e-5


@pytest.mark.parametrize("forbidden", [-1e4, -65504.0, -1e9])
def test_masked_scores_do_not_enter(forbidden):
    """Added masks of float16, of BERT and of float32 are recognized."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4, 1, LENGTH, LENGTH))
    added = np.where(np.tril(np.ones((LENGTH, LENGTH))), 0, forbidden)
    settings = ShareSettings(scores=True)
    (chunk, *_) = chunks(scores + added, None, None, None, settings)
    np.testing.assert_array_equal(chunk.allowed[0], added == 0)


def test_a_stream_of_batches_gives_the_same_result(data, heads):
    attention, tokens = data
    parts = [slice(first, first + 20) for first in range(0, SENTENCES, 20)]
    stream = ((attention[part], tokens[part]) for part in parts)
    again = dp.heads.shares(stream, symbols=SYMBOLS, nulls=19)
    np.testing.assert_allclose(again.semantic, heads.semantic, atol=6e-3)
    np.testing.assert_allclose(again.patterns["entropy"], heads.patterns["entropy"], rtol=1e-5)


def test_first_batches_are_divided_and_later_ones_whole():
    batches = ((np.full((40, 1, 2, 2), 0.5),) for _ in range(BLOCKS + 2))
    sizes = [len(chunk.allowed) for chunk in chunks(batches, None, None, None, ShareSettings())]
    assert set(sizes[:-2]) == {2} and sizes[-2:] == [40, 40]


def test_hashed_tables_agree_with_exact_ones(data, heads):
    slots = 4 * BLOCKS * (len(MIXTURES) + 1)
    hashed = dp.heads.shares(*data, table_bytes=90 * slots, nulls=19)
    assert 0.3 < hashed.coverage["both"] < 0.95 and hashed.coverage["semantic"] == 1
    np.testing.assert_allclose(hashed.positional, heads.positional, atol=2e-5)
    np.testing.assert_allclose(hashed.rest, heads.rest, atol=0.1)


def test_patterns_by_hand():
    tokens = np.array([[0, 1, 0, 2], [1, 1, 1, 0]] * 320)
    weights = np.tile(np.array([0.1, 0.2, 0.3, 0.4]), (SENTENCES, 1, 4, 1))
    heads = dp.heads.shares(weights, tokens, nulls=19)
    patterns = {name: float(values[0]) for name, values in heads.patterns.items()}
    assert patterns["first"] == pytest.approx(0.1) and patterns["diagonal"] == pytest.approx(0.25)
    assert patterns["previous"] == pytest.approx((0.1 + 0.2 + 0.3) / 3)
    assert patterns["duplicate"] == pytest.approx((0.3 + 0.1 + 0.5 + 0.4 + 0.3) / 5)
    entropy = -(weights[0, 0, 0] * np.log(weights[0, 0, 0])).sum() / np.log(4)
    assert patterns["entropy"] == pytest.approx(entropy)
    assert heads.uniform["previous"] == pytest.approx(0.25) and heads.uniform["entropy"] == 1


def test_keys_can_have_tokens_of_their_own():
    rng = np.random.default_rng(0)
    tokens = rng.integers(6, size=(SENTENCES, LENGTH))
    previous = np.pad(tokens[:, :-1], ((0, 0), (1, 0)), constant_values=6)
    scores = 3.0 * (tokens[:, :, None] == previous[:, None, :])[:, None]
    settings = dp.heads.ShareSettings(scores=True, nulls=19)
    assert dp.heads.shares(scores, tokens, settings=settings).semantic[0] < 0.1
    assert dp.heads.shares(scores, tokens, None, previous, settings).semantic[0] > 0.7


def test_uniform_attention_has_no_share():
    weights = np.full((SENTENCES, 1, LENGTH, LENGTH), 1 / LENGTH)
    heads = dp.heads.shares(weights, np.zeros((SENTENCES, LENGTH), int), nulls=19)
    assert heads.positional[0] == heads.semantic[0] == 0 and heads.rest[0] == 1
    assert heads.verdict[0] == "neither"


def test_without_tokens_no_head_is_called_neither(data):
    heads = dp.heads.shares(data[0], nulls=19)
    assert heads.verdict[[SEMANTIC, POSITIONAL]].tolist() == ["not positional", "positional"]
    assert str(heads).endswith("no tokens given: semantic share not measured")


def test_layers_are_kept_and_the_result_is_one(data, tmp_path):
    attention, tokens = data
    layers = attention.reshape(SENTENCES, 1, -1, LENGTH, LENGTH)
    heads = dp.heads.shares(layers, tokens, nulls=19)
    assert heads.dataset()["semantic"].dims == ("layer", "head")
    assert heads.description.notes[0].startswith("layer 0, head 0: semantic (positional ")
    assert_is_a_result(heads, tmp_path)


def test_other_arrays_are_read_through_dlpack(data, heads):
    attention, tokens = jnp.asarray(data[0]), jnp.asarray(data[1])
    np.testing.assert_allclose(dp.heads.shares(attention, tokens, nulls=19).rest, heads.rest)
    low = as_array("attention", attention.astype(jnp.bfloat16))
    assert low.shape == attention.shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attention": np.ones((3, 3))}, r"attention = 'shape \(3, 3\)': must be of shape"),
        ({"attention": np.full((9, 1, 5, 5), np.nan)}, "attention = 'NaN'"),
        ({"attention": np.full((9, 1, 5, 5), 0.5)}, "must sum to one"),
        ({"attention": np.eye(5) * np.ones((9, 1, 1, 1)), "mask": np.ones((9, 5, 5))}, "floor"),
        ({"attention": np.eye(5) * np.ones((9, 1, 1, 1))}, "one allowed key in every row"),
        ({"attention": np.full((2, 1, 5, 5), 0.2)}, "three or more sentences"),
        (
            {"attention": np.eye(5)[np.add.outer(range(9), range(5)) % 5][:, None]},
            "differ by sentence",
        ),
        ({"mask": np.zeros((9, 5))}, "three or more sentences with allowed keys"),
        ({"tokens": np.zeros((9, 4), int)}, r"tokens = .* must be integers of shape \(9, 5\)"),
        ({"tokens": np.zeros((9, 5))}, "must be integers"),
        ({"mask": np.ones((2, 2))}, r"mask = .*\(sentence, query, key\)"),
        ({"mask": np.triu(np.full((9, 5, 5), -1e9), 1)}, "mask = .*not added to scores"),
        ({"attention": iter(()), "tokens": np.zeros((9, 5), int)}, "tokens = .*in the tuples"),
        ({"attention": iter(()), "mask": np.ones((9, 5, 5))}, "mask = .*in the tuples"),
        ({"key_tokens": np.zeros((9, 5), int)}, "must be passed with tokens"),
        ({"scores": "no"}, "scores = 'no'"),
        ({"nulls": 3}, "nulls = 3"),
        ({"settings": ShareSettings(symbols=2), "tokens": np.arange(45).reshape(9, 5)}, "at most"),
        ({"symbols": 2, "tokens": np.arange(45).reshape(9, 5)}, "at most 2"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"attention": np.full((9, 1, 5, 5), 0.2)} | change
    with pytest.raises(InvalidInput, match=message):
        dp.heads.shares(**given)
