"""Training, its checkpoints and its results, on a small task."""

import os
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest

from dotphase import histogram
from dotphase.errors import Interrupted, InvalidInput
from dotphase.histogram.mechanisms import RELEASE, TRAINING, run
from dotphase.histogram.network import MECHANISMS

SMALL = {"task": histogram.Task(symbols=3, length=4, samples=300), "dimension": 16, "hidden": 64,
         "batch": 4}  # fmt: skip
ASKED = {"runs": 2, "epochs": 5, "release": True, "release_epochs": 3, "seed": 4}


@pytest.fixture(scope="module")
def whole():
    """Both mechanisms, uninterrupted."""
    return run(**ASKED, **SMALL, landscape=True)


def same(first, second):
    for a, b in ((first.trained, second.trained), (first.released, second.released)):
        jax.tree.map(np.testing.assert_array_equal, a.networks, b.networks)
        np.testing.assert_array_equal(a.train_loss, b.train_loss)
        np.testing.assert_array_equal(a.accuracy, b.accuracy)


def test_networks_learn():
    found = run(runs=1, epochs=60, **SMALL)
    counts = histogram.draw(SMALL["task"]).held_out_counts
    constant = np.bincount(counts.ravel()).max() / counts.size
    assert found.trained.final_accuracy.min() > constant + 0.2


def test_result_has_what_was_asked(whole):
    assert whole.mechanism == ("semantic", "semantic", "positional", "positional")
    assert whole.trained.accuracy.shape == (4, 5) and whole.released.accuracy.shape == (4, 3)
    assert whole.trained.networks.tokens.dtype == np.float32
    starts = whole.moved.from_start
    assert np.all(starts > 0) and np.all(whole.moved.summed_from_start > starts)
    # The noise of the release alone, .001 sqrt(entries), is a lower bound.
    bound = 0.5e-3 * np.sqrt((3 + 4 + 16 + 16) * 16)
    assert np.all(whole.moved.after_release > bound)
    for name in MECHANISMS:
        network = whole.network(name)
        assert not np.any(network.tokens[:, 8:]) and not np.any(network.positions[:, :8])
        freed = whole.network(name, released=True)
        assert np.all(freed.tokens[:, 8:] != 0) and np.all(freed.query != 0)
    assert set(whole.summary()) == set(MECHANISMS)
    assert "positional: 2 runs" in str(whole)


def test_a_run_does_not_depend_on_how_many_there_are(whole):
    alone = run("positional", 1, 5, seed=4, **SMALL)
    np.testing.assert_array_equal(alone.trained.train_loss[0], whole.trained.train_loss[2])
    np.testing.assert_array_equal(
        alone.network("positional").query, whole.network("positional").query
    )


def test_one_vmap_trains_as_one_by_one(whole, monkeypatch):
    train = sys.modules["dotphase.histogram.train"]
    monkeypatch.setattr(train, "_one_by_one", train._one_vmap)
    other = run(runs=2, epochs=2, seed=4, **SMALL)
    expected = whole.trained.train_loss[:, :2]
    np.testing.assert_allclose(other.trained.train_loss, expected, rtol=1e-4)


def test_runs_stop_at_the_target_and_wait(whole, monkeypatch):
    train = sys.modules["dotphase.histogram.train"]
    accuracy = whole.trained.accuracy[:, :4]
    best, target = int(np.argmax(accuracy.max(axis=1))), float(accuracy.max())
    stopped = int(np.argmax(accuracy[best] >= target)) + 1
    for advance in (train._one_by_one, train._one_vmap):
        monkeypatch.setattr(train, "_one_by_one", advance)
        found = run(runs=2, epochs=4, seed=4, target=target, **SMALL).trained
        assert found.epochs[best] == stopped
        assert np.isnan(found.accuracy[best, stopped:]).all()
        assert found.final_accuracy[best] >= target
        assert found.epochs.max() == 4 or np.all(found.final_accuracy >= target)


KILLED = """
import os, signal, sys
from dotphase import histogram
from dotphase.storage import files

replace, writes = os.replace, []

def replaced(source, target):
    writes.append(target)
    if len(writes) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

files.os.replace = replaced
histogram.run(runs=2, epochs=5, release=True, release_epochs=3, seed=4, dimension=16,
    hidden=64, batch=4, task=histogram.Task(symbols=3, length=4, samples=300),
    checkpoint=sys.argv[1])
"""


def resumed(folder):
    """Stages and epochs that were left to do, and the result."""
    calls = []

    def tell(stage, done, row):
        calls.append((stage, done))

    return calls, run(**ASKED, **SMALL, checkpoint=folder, on_epoch=tell)


def test_killed_while_writing_and_resumed_is_as_uninterrupted(whole, tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # as here
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    whole_file, part = sorted(tmp_path.iterdir(), key=lambda path: path.name.startswith("."))
    assert whole_file.name == TRAINING and part.name.startswith(".training.checkpoint-")
    calls, again = resumed(tmp_path)
    assert calls[0] == ("training", 3) and calls[-1] == ("release", 3)
    same(again, whole)
    assert {path.name for path in tmp_path.iterdir()} == {TRAINING, RELEASE}


def test_stopped_after_the_release_and_resumed_is_as_uninterrupted(whole, tmp_path):
    def stop(stage, done, row):
        if stage == "release" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        run(**ASKED, **SMALL, checkpoint=tmp_path, on_epoch=stop)
    assert caught.value.finished.released is None
    calls, again = resumed(tmp_path)
    assert calls == [("release", 3)]
    same(again, whole)


def test_interrupt_carries_what_was_done_and_more_epochs_go_on(whole, tmp_path):
    def stop(stage, done, row):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        run(runs=2, epochs=3, seed=4, **SMALL, checkpoint=tmp_path, on_epoch=stop)
    assert caught.value.finished.trained.accuracy.shape == (4, 2)
    longer = run(runs=2, epochs=5, seed=4, **SMALL, checkpoint=tmp_path)
    np.testing.assert_array_equal(longer.trained.accuracy, whole.trained.accuracy)
    with pytest.raises(InvalidInput, match="at least the 5"):
        run(runs=2, epochs=3, seed=4, **SMALL, checkpoint=tmp_path)
    with pytest.raises(InvalidInput, match="seed: 4 stored, 5 requested"):
        run(runs=2, epochs=5, seed=5, **SMALL, checkpoint=tmp_path)
    (tmp_path / TRAINING).write_bytes(b"broken")
    with pytest.warns(UserWarning, match="is damaged: training begins anew"):
        again = run(runs=2, epochs=5, seed=4, **SMALL, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.trained.accuracy, whole.trained.accuracy)


def test_divergence_is_not_silent(monkeypatch):
    train = sys.modules["dotphase.histogram.train"]
    nan = np.full((3, 4), np.nan, np.float32)
    monkeypatch.setattr(train, "_one_by_one", lambda state, *rest: (state, nan))
    with pytest.raises(FloatingPointError, match="epoch 1"):
        run(runs=2, epochs=1, **SMALL)


def test_saved_and_loaded(whole, tmp_path):
    again = histogram.load(whole.save(tmp_path / "result.npz"))
    same(again, whole)
    assert again.statistics[0].accuracy == whole.statistics[0].accuracy
    np.testing.assert_equal(again.summary(), whole.summary())
    np.testing.assert_array_equal(again.landscape.aligned_loss, whole.landscape.aligned_loss)
    np.savez(tmp_path / "other.npz", a=np.zeros(2))
    with pytest.raises(InvalidInput, match="experiment"):
        histogram.load(tmp_path / "other.npz")


def test_weights_on_disk_hold_no_objects(whole, tmp_path):
    path = histogram.save_network(whole.network("semantic"), tmp_path / "network.npz")
    again = histogram.load_network(path)
    np.testing.assert_array_equal(again.value, whole.network("semantic").value)
    np.savez(tmp_path / "objects.npz", tokens=np.asarray([{}], dtype=object))
    with pytest.raises(InvalidInput, match="plain arrays"):
        histogram.load_network(tmp_path / "objects.npz")
    with pytest.raises(InvalidInput, match="run"):
        whole.network("semantic", 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [("mechanism", "other"), ("runs", 0), ("epochs", 0), ("seed", -1), ("target", 1.5),
     ("dimension", 7), ("checkpoint", "no/such/folder"), ("batch", 0)],
)  # fmt: skip
def test_bad_arguments(field, value):
    with pytest.raises(InvalidInput, match=field):
        run(**{"runs": 1, "epochs": 1, **SMALL, field: value})


def test_landscape_needs_both():
    with pytest.raises(InvalidInput, match="both"):
        run("semantic", 1, 1, landscape=True, **SMALL)


def test_old_names_say_what_they_are_called_now():
    with pytest.raises(AttributeError, match=r"dp\.histogram\.run"):
        histogram.experiment  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        histogram.nonsense  # noqa: B018
