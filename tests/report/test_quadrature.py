"""Fixed rules of quadrature, and what they do to alpha_c."""

import pytest

from dotphase._numerics.quadrature import gauss_hermite
from dotphase.report.items import quadrature
from dotphase.report.rules import degree_seven
from dotphase.report.store import Parts


def test_fixed_rules_integrate_polynomials():
    for nodes, weights in (degree_seven(), gauss_hermite(4, dims=4)):
        assert weights.sum() == pytest.approx(1)
        assert nodes[0] ** 2 @ weights == pytest.approx(1)
        assert nodes[3] ** 6 @ weights == pytest.approx(15)
        assert (nodes[0] ** 2 * nodes[2] ** 4) @ weights == pytest.approx(3)


def test_quadrature_sees_a_rule_of_low_degree_go_wrong(tmp_path):
    sizes = {"log2": [12, 13], "orders": [5]}
    datasets = quadrature.compute(Parts(tmp_path), sizes)
    degree, hermite = datasets["rules"]["alpha_c"].values
    assert degree == pytest.approx(1.365, abs=0.02)  # nine percent too much
    assert hermite == pytest.approx(1.2756, abs=0.01)
    assert len(quadrature.compare(datasets)) == 3
    assert quadrature.draw(datasets).axes
