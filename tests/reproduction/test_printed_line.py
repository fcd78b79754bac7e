"""The fit of the released runs finds a line that is put in, and the committed result is today's."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from reproduction import printed_line

DATA = Path(__file__).resolve().parents[2] / "docs" / "data" / "printed_line.json"


def released(shift):
    """Losses that cross `shift` away from a theory with alpha_c = 1 + omega."""
    omegas, alphas = np.linspace(0.02, 0.4, 20), np.linspace(0.4, 2, 25)
    x = alphas / (1 + omegas[:, None]) - 1 - shift
    gap = 0.001 * (-x + 0.3 * x**2)
    noise = 2e-5 * np.random.default_rng(0).standard_normal(gap.shape)
    loss = np.stack([0.003 + gap + noise, np.full_like(gap, 0.003)], axis=-1)
    spread = np.full_like(loss, 2e-5 * np.sqrt(24 / 2))
    axes = ("omega", "alpha", "start")
    grid = xr.Dataset(
        {"train_loss": (axes, loss), "train_loss_std": (axes, spread)},
        {"omega": omegas, "alpha": alphas, "start": ["semantic", "positional"]},
    )
    return grid.expand_dims(mixing=["standard"])


@pytest.mark.parametrize("shift", [0.0, -0.05])
def test_the_fit_finds_a_known_shift(monkeypatch, shift):
    monkeypatch.setattr(printed_line, "table", lambda name: released(shift))
    theory = {omega: 1 + omega for omega in (0.0, 0.1, 0.2, 0.3, 0.4)}
    root, covariance, scale, points = printed_line.fit(theory, 0.4)
    power = np.vander([0.1, 0.2, 0.3], 3)
    found, error = power @ root, np.sqrt(np.diag(power @ covariance @ power.T))
    assert (abs(found - shift) < 4 * error).all() and (error < 0.01).all()
    assert 0.7 < scale < 1.3 and points > 100
    verdict = printed_line.disagreement(theory, theory, root, covariance)
    assert (verdict["p"] < 1e-3) == (shift != 0)


def test_the_committed_result_is_that_of_the_command():
    fresh = printed_line.compare(printed_line.REPORT)
    stored = json.loads(DATA.read_text(encoding="utf-8"))
    assert [each["points"] for each in fresh] == [each["points"] for each in stored]
    for new, old in zip(fresh, stored, strict=True):
        assert new["printed"]["chi2"] == pytest.approx(old["printed"]["chi2"], rel=0.02)
        assert new["theory"]["chi2"] == pytest.approx(old["theory"]["chi2"], rel=0.02)
