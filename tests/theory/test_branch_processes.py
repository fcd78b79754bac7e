"""Chains in processes of their own: the same numbers, and nothing lost where that fails."""

import sys
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.runtime import processes, threads
from dotphase.theory import branch_processes
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solve import continue_many

ALPHAS = [1.5, 2.0]
SETTINGS = SolverSettings(log2_points=12)


@pytest.fixture
def started(monkeypatch):
    """Workers that were started, on whatever machine."""
    crew, worker = [], processes.Worker

    def noted():
        crew.append(worker())
        return crew[-1]

    monkeypatch.setattr(processes, "Worker", noted)
    monkeypatch.setattr(threads, "CORES", 2)
    yield crew
    assert all(worker.process.poll() is not None for worker in crew)


def test_the_numbers_are_those_of_threads(paper, started, monkeypatch):
    chains, seen = [(paper, "semantic"), (dp.positional_semantic(0.1), "positional")], []
    here = continue_many(chains, ALPHAS, settings=SETTINGS)
    assert not started
    monkeypatch.setattr(branch_processes, "MIN_POINTS", 4)
    there = continue_many(chains, ALPHAS, settings=SETTINGS, progress=seen.append)
    assert len(started) == 2 and len(seen) == 4
    for mine, theirs in zip(here, there, strict=True):
        assert [one.alpha for one in theirs] == ALPHAS
        for one, other in zip(mine, theirs, strict=True):
            # To the last digits only where both are compiled with the same options.
            assert one.train_loss == pytest.approx(other.train_loss, rel=1e-10)
            assert one.norms == pytest.approx(other.norms, rel=1e-8)
            assert one.stderr == pytest.approx(other.stderr, rel=1e-6)
            assert one.stability.kind == other.stability.kind


def _teacher(h):
    return 0.7 * dp.softmax_attention(h) + 0.3 * jnp.eye(2)


def test_models_that_cannot_be_told_of_are_solved_here(started, monkeypatch):
    monkeypatch.setattr(branch_processes, "MIN_POINTS", 2)
    local = dp.Model(lambda h: _teacher(h), dp.softmax_attention, length=2, positions=np.eye(2))
    # One that only this process can look up, and that a worker does not understand.
    monkeypatch.setitem(sys.modules, "only_here", SimpleNamespace(_teacher=_teacher))
    monkeypatch.setattr(sys.modules["__main__"], "_teacher", _teacher, raising=False)
    unknown = dp.Model(_teacher, dp.softmax_attention, length=2, positions=np.eye(2))
    cases = ((local, "only_here", 0), (unknown, "only_here", 2), (unknown, "__main__", 0))
    for model, module, workers in cases:
        started.clear()
        monkeypatch.setattr(_teacher, "__module__", module)
        chains = [(model, "semantic")] * 2
        assert branch_processes.in_processes(chains, [2.0], SETTINGS) == {}
        assert len(started) == workers
    (one,), (other,) = continue_many([(local, "semantic")] * 2, [2.0], settings=SETTINGS)
    assert one.converged and one.train_loss == other.train_loss


def test_whoever_interrupts_leaves_no_worker_behind(paper, started, monkeypatch):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(processes.interrupt, "check", stop)
    with pytest.raises(KeyboardInterrupt):
        branch_processes.in_processes([(paper, "semantic")] * 2, [1.0] * 200, SETTINGS)
    assert len(started) == 2


@pytest.mark.parametrize(
    ("chains", "alphas", "cores", "worth"),
    [(2, 20, 2, False), (50, 25, 2, True), (50, 25, 1, False), (1, 500, 2, False)],
)
def test_few_points_are_not_worth_a_process(monkeypatch, chains, alphas, cores, worth):
    monkeypatch.setattr(threads, "CORES", cores)
    assert branch_processes.worth_it(chains, alphas) is worth
