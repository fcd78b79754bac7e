"""The Bayes-optimal line of wide attention."""

import pytest

import dotphase as dp
from result_checks import assert_is_a_result

#: alpha, tokens, rho, error: of `aim_SE_softmax_T=2_*`
#: (FabrizioBoncoraglio/BO_ExtensiveRankAttention, arXiv:2506.01582), to their printed accuracy.
RELEASED = [
    (0.007467843137254902, 2, 0.1, 0.958375),
    (0.02422549019607843, 2, 0.1, 0.732797),
    (0.042845098039215684, 2, 0.1, 0.248522),
    (0.02001686274509804, 2, 0.3, 0.895613),
    (0.06500980392156863, 2, 0.3, 0.525989),
    (0.11500196078431373, 2, 0.3, 0.117167),
    (0.029420196078431368, 2, 0.5, 0.853692),
    (0.09559313725490194, 2, 0.5, 0.419926),
    (0.16911862745098039, 2, 0.5, 0.057706),
    (0.039224117647058826, 2, 2.0, 0.832266),
    (0.1274558823529412, 2, 2.0, 0.426645),
    (0.22549117647058825, 2, 2.0, 0.060168),
]


@pytest.mark.parametrize(("alpha", "length", "rho", "mmse"), RELEASED)
def test_released_rows(alpha, length, rho, mmse):
    best = dp.wide.bayes(alpha=alpha, rho=rho, length=length)
    assert best.mmse == pytest.approx(mmse, abs=3e-4)
    assert best.stderr["mmse"] < 1e-8


def test_recovery_is_where_the_formula_says():
    threshold = dp.wide.recovery(rho=0.5, length=3).bayes
    assert threshold == pytest.approx((0.5 - 0.5**2 / 2) / 5)
    below, above = (
        dp.wide.bayes(alpha=scale * threshold, rho=0.5, length=3) for scale in (0.99, 1.0)
    )
    assert 0 < below.mmse < 0.01 and not below.exact_recovery
    assert above.mmse == 0 and above.exact_recovery and above.q == 1.5


def test_without_data_only_the_mean_is_known():
    """The prior knows ``tr S*/d``: q = rho, and the error is 1."""
    assert dp.wide.bayes(alpha=1e-6, rho=2.0).mmse == pytest.approx(1, abs=1e-5)


def test_only_the_number_of_known_scores_matters():
    one, two = (dp.wide.bayes(alpha=0.3 / k, rho=0.5, length=L).mmse for k, L in ((1, 1), (2, 2)))
    assert one == pytest.approx(two, rel=1e-10)
    # matrix sensing of the prototype: q = 1.37187 at alpha = .3
    assert one == pytest.approx(1.5 - 1.37187, abs=1e-5)


def test_it_is_a_result(tmp_path):
    assert_is_a_result(dp.wide.bayes(alpha=0.1, rho=0.5), tmp_path)
