"""Shares of synthetic heads whose population is enumerated exactly, nulls, masks, streams."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.errors import InvalidInput
from dotphase.heads import ShareSettings
from dotphase.heads.collect import Collected
from dotphase.heads.source import Chunk, as_array, chunks
from dotphase.histogram.introspect import _run
from result_checks import assert_is_a_result

LENGTH, SYMBOLS, SENTENCES = 5, 3, 640
#: Weights of the positional part, the semantic part and noise.
MIXTURES = [(k / 4, 1 - k / 4, 0.0) for k in range(5)] + [(0, 0, 1), (0.3, 0.3, 0.4)]


def scores_of(tokens, noise, seed=3):
    """Scores of one head for each mixture."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(LENGTH, LENGTH))
    kernel = rng.normal(size=(SYMBOLS, SYMBOLS))[tokens[:, :, None], tokens[:, None, :]]
    parts = [np.sqrt(p) * matrix + np.sqrt(s) * kernel for p, s, _ in MIXTURES]
    sizes = np.sqrt([z for *_, z in MIXTURES])[:, None, None]
    return np.stack(parts, axis=1) + sizes * noise


def exact_shares():
    """Shares of the population: all sentences, and the variance of centered noise."""
    tokens = np.array(list(itertools.product(range(SYMBOLS), repeat=LENGTH)))
    x = scores_of(tokens, 0.0)
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


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    tokens = rng.integers(SYMBOLS, size=(SENTENCES, LENGTH))
    noise = rng.normal(size=(SENTENCES, len(MIXTURES), LENGTH, LENGTH))
    return np.asarray(jax.nn.softmax(scores_of(tokens, noise), axis=-1)), tokens


@pytest.fixture(scope="module")
def heads(data):
    return dp.heads.shares(*data)


def test_known_shares_are_recovered_within_their_errors(heads):
    scores = []
    for name, exact in exact_shares().items():
        error = np.maximum(heads.stderr[name], 1e-5)
        scores.append((getattr(heads, name) - exact) / error)
    scores = np.asarray(scores)
    # t distribution of 16 blocks: 6% beyond two errors; heads share tokens and matrices.
    assert np.mean(np.abs(scores) < 2) > 0.85 and np.abs(scores).max() < 4.5
    total = heads.positional + heads.semantic + heads.interaction + heads.rest
    np.testing.assert_allclose(total, 1, atol=1e-12)


def test_verdicts_of_pure_and_mixed_heads(heads):
    verdict = dict(zip(MIXTURES, heads.verdict.tolist(), strict=True))
    assert verdict[1.0, 0.0, 0.0] == "positional" and verdict[0.0, 1.0, 0.0] == "semantic"
    assert verdict[0.5, 0.5, 0.0] == "mixed" and verdict[0, 0, 1] == "neither"


def test_distances_vanish_for_the_right_model(heads):
    semantic, positional, noise = 0, 4, 5
    assert heads.distance["positional"][positional] < 1e-6 < 0.1 < heads.distance["positional"][0]
    assert heads.distance["semantic"][semantic] < 1e-4 < 0.1 < heads.distance["semantic"][4]
    assert min(heads.distance[name][noise] for name in heads.distance) > 0.2


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
    heads = dp.heads.shares(attention, tokens, diagonal=False)
    assert heads.verdict.tolist() == ["positional", "semantic"]
    np.testing.assert_allclose(heads.positional, [1, 0], atol=3e-3)
    np.testing.assert_allclose(heads.semantic, [0, 1 - 1 / 9], atol=2e-2)
    # On the diagonal positions and tokens are confounded; the verdict remains.
    with_diagonal = dp.heads.shares(attention, tokens)
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
    longer = np.pad(attention, ((0, 0), (0, 0), (0, 2), (0, 2)), constant_values=0.5)
    real = np.broadcast_to(np.arange(LENGTH + 2) < LENGTH, (SENTENCES, LENGTH + 2))
    padded = dp.heads.shares(longer, np.pad(tokens, ((0, 0), (0, 2))), real, nulls=19)
    np.testing.assert_allclose(padded.semantic, heads.semantic)


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
    parts = [slice(first, first + 40) for first in range(0, SENTENCES, 40)]
    attention, tokens = data
    stream = ((attention[part], tokens[part]) for part in parts)
    again = dp.heads.shares(stream, symbols=SYMBOLS, blocks=16, nulls=19)
    np.testing.assert_allclose(again.semantic, heads.semantic, atol=5e-3)
    np.testing.assert_allclose(again.patterns["entropy"], heads.patterns["entropy"], rtol=1e-5)


def test_more_groups_than_integers_are_refused():
    allowed, tokens = np.broadcast_to(True, (2, 4000, 4000)), np.zeros((2, 4000), int)
    with pytest.raises(InvalidInput, match="symbols = None: must be at most 759250 for 16000000"):
        Collected(Chunk((1,), allowed[:, None], allowed, (tokens, tokens)), ShareSettings())


def test_hashed_tables_agree_with_exact_ones(data, heads):
    hashed = dp.heads.shares(*data, table_bytes=4 * 16 * len(MIXTURES) * 120, nulls=19)
    assert 0.3 < hashed.coverage["both"] < 0.95 and hashed.coverage["semantic"] == 1
    np.testing.assert_allclose(hashed.positional, heads.positional, atol=2e-5)
    np.testing.assert_allclose(hashed.rest, heads.rest, atol=0.1)


def test_patterns_by_hand():
    tokens = np.array([[0, 1, 0, 2], [1, 1, 1, 0]] * 8)
    weights = np.tile(np.array([0.1, 0.2, 0.3, 0.4]), (16, 1, 4, 1))
    heads = dp.heads.shares(weights, tokens)
    patterns = {name: float(values[0]) for name, values in heads.patterns.items()}
    assert patterns["first"] == pytest.approx(0.1) and patterns["diagonal"] == pytest.approx(0.25)
    assert patterns["previous"] == pytest.approx((0.1 + 0.2 + 0.3) / 3)
    assert patterns["duplicate"] == pytest.approx((0.3 + 0.1 + 0.5 + 0.4 + 0.3) / 5)
    entropy = -(weights[0, 0, 0] * np.log(weights[0, 0, 0])).sum() / np.log(4)
    assert patterns["entropy"] == pytest.approx(entropy)
    assert heads.uniform["previous"] == pytest.approx(0.25) and heads.uniform["entropy"] == 1


def test_keys_can_have_tokens_of_their_own():
    rng = np.random.default_rng(0)
    tokens = rng.integers(6, size=(400, 7))
    previous = np.pad(tokens[:, :-1], ((0, 0), (1, 0)), constant_values=6)
    scores = 3.0 * (tokens[:, :, None] == previous[:, None, :])[:, None]
    settings = dp.heads.ShareSettings(scores=True, nulls=19)
    assert dp.heads.shares(scores, tokens, settings=settings).semantic[0] < 0.1
    assert dp.heads.shares(scores, tokens, None, previous, settings).semantic[0] > 0.7


def test_uniform_attention_has_no_share():
    heads = dp.heads.shares(np.full((20, 1, 4, 4), 0.25), np.zeros((20, 4), int))
    assert heads.positional[0] == heads.semantic[0] == 0 and heads.rest[0] == 1
    assert heads.verdict[0] == "neither"


def test_without_tokens_no_head_is_called_neither(data):
    heads = dp.heads.shares(data[0][:64])
    verdict = dict(zip(MIXTURES, heads.verdict.tolist(), strict=True))
    assert verdict[0.0, 1.0, 0.0] == "not positional" and verdict[1.0, 0.0, 0.0] == "positional"
    assert str(heads).endswith("no tokens given: semantic share not measured")


def test_layers_are_kept_and_the_result_is_one(data, tmp_path):
    attention, tokens = data
    layers = attention.reshape(SENTENCES, 1, -1, LENGTH, LENGTH)
    heads = dp.heads.shares(layers, tokens)
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
