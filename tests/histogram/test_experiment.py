"""Training, its checkpoints and its result, on a small task."""

import os
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest

from dotphase import histogram
from dotphase.errors import Interrupted, InvalidInput
from dotphase.histogram.experiment import RELEASE, TRAINING, run
from dotphase.histogram.network import MECHANISMS
from result_checks import assert_is_a_result

SMALL = {"task": histogram.Task(symbols=3, length=4, samples=300), "dimension": 16, "hidden": 64,
         "batch_size": 4}  # fmt: skip
ARGUMENTS = {"runs": 2, "epochs": 5, "release": True, "release_epochs": 3, "seed": 4}


@pytest.fixture(scope="module")
def experiment():
    """Both mechanisms, uninterrupted."""
    return run(**ARGUMENTS, **SMALL, landscape=True)


def same(first, second):
    for a, b in ((first.trained, second.trained), (first.released, second.released)):
        jax.tree.map(np.testing.assert_array_equal, a.networks, b.networks)
        np.testing.assert_array_equal(a.train_loss, b.train_loss)
        np.testing.assert_array_equal(a.accuracy, b.accuracy)


def test_networks_learn():
    result = run(runs=1, epochs=60, **SMALL)
    counts = histogram.draw(SMALL["task"]).held_out_counts
    constant = np.bincount(counts.ravel()).max() / counts.size
    assert result.trained.final_accuracy.min() > constant + 0.2


def test_result_has_what_was_asked(experiment):
    assert experiment.mechanism == ("semantic", "semantic", "positional", "positional")
    assert experiment.trained.accuracy.shape == (4, 5) and experiment.released.accuracy.shape == (
        4,
        3,
    )
    assert experiment.trained.networks.tokens.dtype == np.float32
    distances = experiment.distances
    assert np.all(distances.from_start > 0)
    assert np.all(distances.summed_from_start > distances.from_start)
    # The noise of the release alone, .001 sqrt(entries), is a lower bound.
    bound = 0.5e-3 * np.sqrt((3 + 4 + 16 + 16) * 16)
    assert np.all(distances.after_release > bound)
    for name in MECHANISMS:
        network = experiment.network(name)
        assert not np.any(network.tokens[:, 8:]) and not np.any(network.positions[:, :8])
        freed = experiment.network(name, released=True)
        assert np.all(freed.tokens[:, 8:] != 0) and np.all(freed.query != 0)
    assert set(experiment.summary()) == set(MECHANISMS)
    assert "positional" in str(experiment) and "2 runs" in str(experiment)


def test_a_run_does_not_depend_on_how_many_there_are(experiment):
    alone = run("positional", 1, epochs=5, seed=4, **SMALL)
    np.testing.assert_array_equal(alone.trained.train_loss[0], experiment.trained.train_loss[2])
    np.testing.assert_array_equal(
        alone.network("positional").query, experiment.network("positional").query
    )


def test_vmapped_runs_train_as_threads(experiment, monkeypatch):
    train = sys.modules["dotphase.histogram.train"]
    monkeypatch.setattr(train, "_advance_in_threads", train._advance_vmapped)
    other = run(runs=2, epochs=2, seed=4, **SMALL)
    expected = experiment.trained.train_loss[:, :2]
    np.testing.assert_allclose(other.trained.train_loss, expected, rtol=1e-4)


def test_runs_stop_at_the_target_and_wait(experiment, monkeypatch):
    train = sys.modules["dotphase.histogram.train"]
    accuracy = experiment.trained.accuracy[:, :4]
    best, target = int(np.argmax(accuracy.max(axis=1))), float(accuracy.max())
    stopped = int(np.argmax(accuracy[best] >= target)) + 1
    for advance in (train._advance_in_threads, train._advance_vmapped):
        monkeypatch.setattr(train, "_advance_in_threads", advance)
        result = run(runs=2, epochs=4, seed=4, target=target, **SMALL).trained
        assert result.epochs[best] == stopped
        assert np.isnan(result.accuracy[best, stopped:]).all()
        assert result.final_accuracy[best] >= target
        assert result.epochs.max() == 4 or np.all(result.final_accuracy >= target)


KILLED = """
import os, signal, sys
from dotphase import histogram
from dotphase.storage import files

replace, writes = os.replace, []

def replaced(source, target):
    if str(target).startswith(sys.argv[1]):  # not those of JAX's compilation cache
        writes.append(target)
    if len(writes) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)

files.os.replace = replaced
histogram.run(runs=2, epochs=5, release=True, release_epochs=3, seed=4, dimension=16,
    hidden=64, batch_size=4, task=histogram.Task(symbols=3, length=4, samples=300),
    checkpoint=sys.argv[1])
"""


def resumed(folder):
    """Stages and epochs that were still to do, and the result."""
    calls = []

    def progress(event):
        assert event.result.shape == (3, 4)
        calls.append((event.stage, event.done))

    return calls, run(**ARGUMENTS, **SMALL, checkpoint=folder, progress=progress)


def test_killed_while_writing_and_resumed_is_as_uninterrupted(experiment, tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # as here
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    complete, part = sorted(tmp_path.iterdir(), key=lambda path: path.name.startswith("."))
    assert complete.name == TRAINING and part.name.startswith(".training.checkpoint-")
    calls, again = resumed(tmp_path)
    assert calls[0] == ("training", 3) and calls[-1] == ("release", 3)
    same(again, experiment)
    assert {path.name for path in tmp_path.iterdir()} == {TRAINING, RELEASE}


def test_stopped_after_the_release_and_resumed_is_as_uninterrupted(experiment, tmp_path):
    def stop(event):
        if event.stage == "release" and event.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        run(**ARGUMENTS, **SMALL, checkpoint=tmp_path, progress=stop)
    assert caught.value.finished.released is None
    calls, again = resumed(tmp_path)
    assert calls == [("release", 3)]
    same(again, experiment)


def test_an_interrupt_has_the_finished_epochs_and_more_epochs_resume(experiment, tmp_path):
    def stop(event):
        if event.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        run(runs=2, epochs=3, seed=4, **SMALL, checkpoint=tmp_path, progress=stop)
    assert caught.value.finished.trained.accuracy.shape == (4, 2)
    longer = run(runs=2, epochs=5, seed=4, **SMALL, checkpoint=tmp_path)
    np.testing.assert_array_equal(longer.trained.accuracy, experiment.trained.accuracy)
    with pytest.raises(InvalidInput, match="at least 5, the number of epochs"):
        run(runs=2, epochs=3, seed=4, **SMALL, checkpoint=tmp_path)
    with pytest.raises(InvalidInput, match="seed: 4 stored, 5 requested"):
        run(runs=2, epochs=5, seed=5, **SMALL, checkpoint=tmp_path)
    (tmp_path / TRAINING).write_bytes(b"broken")
    with pytest.warns(UserWarning, match="is damaged: training starts again"):
        again = run(runs=2, epochs=5, seed=4, **SMALL, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.trained.accuracy, experiment.trained.accuracy)


def test_divergence_is_not_silent(monkeypatch):
    train = sys.modules["dotphase.histogram.train"]
    nan = np.full((3, 4), np.nan, np.float32)
    monkeypatch.setattr(train, "_advance_in_threads", lambda state, *rest: (state, nan))
    with pytest.raises(FloatingPointError, match="epoch 1"):
        run(runs=2, epochs=1, **SMALL)


def test_an_experiment_is_a_result(experiment, tmp_path):
    assert_is_a_result(experiment, tmp_path)
    dataset = experiment.dataset()
    assert dataset["accuracy"].dims == ("network", "epoch")
    assert dataset["released_accuracy"].dims == ("network", "released_epoch")
    assert dataset["accuracy_by_count"].shape == (4, 4)
    assert dataset.attrs["symbols"] == 3 and dataset.attrs["epochs"] == 5


def test_weights_on_disk_contain_no_objects(experiment, tmp_path):
    path = histogram.save_network(experiment.network("semantic"), tmp_path / "network.npz")
    again = histogram.load_network(path)
    np.testing.assert_array_equal(again.value, experiment.network("semantic").value)
    np.savez(tmp_path / "objects.npz", tokens=np.asarray([{}], dtype=object))
    with pytest.raises(InvalidInput, match="plain arrays"):
        histogram.load_network(tmp_path / "objects.npz")
    with pytest.raises(InvalidInput, match="run"):
        experiment.network("semantic", 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [("mechanism", "other"), ("runs", 0), ("epochs", 0), ("seed", -1), ("target", 1.5),
     ("dimension", 7), ("checkpoint", "no/such/folder"), ("batch_size", 0)],
)  # fmt: skip
def test_bad_arguments(field, value):
    with pytest.raises(InvalidInput, match=field):
        run(**{"runs": 1, "epochs": 1, **SMALL, field: value})


def test_landscape_needs_both():
    with pytest.raises(InvalidInput, match="both"):
        run("semantic", 1, epochs=1, landscape=True, **SMALL)
