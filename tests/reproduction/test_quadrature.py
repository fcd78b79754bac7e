"""Fixed rules of quadrature, and what they do to alpha_c."""

import pytest

from dotphase.numerics.quadrature import gauss_hermite
from reproduction.items import quadrature
from reproduction.released.procedure import degree_eleven, degree_seven, product_rule
from reproduction.store import Parts


def test_fixed_rules_integrate_polynomials():
    for nodes, weights in (product_rule(degree_seven(), degree_eleven()), gauss_hermite(4, dims=4)):
        assert weights.sum() == pytest.approx(1)
        assert nodes[0] ** 2 @ weights == pytest.approx(1)
        assert nodes[3] ** 6 @ weights == pytest.approx(15)
        assert (nodes[0] ** 2 * nodes[2] ** 4) @ weights == pytest.approx(3)
    nodes, weights = degree_eleven()
    assert weights.size == 28 and nodes[0] ** 10 @ weights == pytest.approx(945)
    assert (nodes[0] ** 4 * nodes[1] ** 6) @ weights == pytest.approx(45)
    assert degree_seven().weights.size == 12


def test_quadrature_sees_fixed_rules_go_wrong(tmp_path):
    sizes = {"log2": [12, 13], "orders": [5]}
    datasets = quadrature.compute(Parts(tmp_path), sizes)
    released, hermite = datasets["rules"]["alpha_c"].values
    assert released == pytest.approx(1.2625, abs=0.001)
    assert hermite == pytest.approx(1.2756, abs=0.01)
    assert [row.verdict for row in quadrature.compare(datasets)] != ["agrees"]
    assert quadrature.draw(datasets).axes
