"""Critical lines with and without breaking: what is laid side by side."""

from types import SimpleNamespace

import numpy as np
import pytest

import dotphase as dp
from dotphase.experiments import critical_lines as module
from dotphase.experiments.critical_lines import ENDINGS, LINES, critical_lines


def test_lines_with_and_without_breaking(monkeypatch):
    def critical(model, **asked):
        omega = float(model.teacher.omega)
        found = {name: place + omega for place, name in enumerate(("alpha_c", "alpha_l"), 1)}
        errors = {f"{name}_stderr": 0.03 for name in found}
        return SimpleNamespace(**found, **errors, crosses=omega < 0.5, trusted=True, message="fine")

    def broken_critical(model, found, **asked):
        part = SimpleNamespace(there=found.alpha_c > 1.25, message="the branch is lost")
        shifts = {f"{name}_shift": -0.1 for name in LINES}
        errors = {f"{name}_shift_stderr": 0.04 for name in LINES}
        return SimpleNamespace(**shifts, **errors, semantic=part, positional=part, linear=part)

    monkeypatch.setattr(module, "critical", critical)
    monkeypatch.setattr(module, "broken_critical", broken_critical)
    found = critical_lines(dp.positional_semantic, [0.2, 0.3, 0.6])
    assert {line + ending for line in LINES for ending in ENDINGS} <= set(found)
    assert found["alpha_l_broken"].values[:2] == pytest.approx([2.1, 2.2])
    assert found["alpha_c_broken_stderr"].values[:2] == pytest.approx([0.05, 0.05])
    assert found["alpha_c"].values[2] == pytest.approx(1.6)
    assert np.isnan(found["alpha_c_shift"].values[2])
    assert "the branch is lost" in str(found["message"].values[0])
    assert found["message"].values[1] == "fine"
