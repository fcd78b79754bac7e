"""The output side of a quadratic network: one token, labels ``y = h``, squared loss."""

from __future__ import annotations

from dotphase.extensive.score_channel import Overlaps, ScoreAverages

#: Second derivative of the loss ``(h - h*)^2/2`` in the score h, whose variance is 2 Q*.
CURVATURE = 2.0


class QuadraticChannel:
    """Closed forms of the averages of `ScoreChannel` for one token."""

    def __init__(self, Q: float) -> None:
        self.Q = Q

    def reset(self) -> None:
        """Do nothing: there is no state."""

    def averages(self, overlaps: Overlaps) -> ScoreAverages:
        """Averages at the proximal points."""
        q, m, V, _ = overlaps
        slope = CURVATURE / (1 + CURVATURE * V)
        chihat = slope**2 * max(self.Q - 2 * m + q, 1e-30)
        return ScoreAverages(slope, slope, chihat, chihat / (2 * CURVATURE), 0.0, 1.0)

    def test_loss(self, overlaps: Overlaps) -> float:
        """Mean loss of a fresh sentence."""
        return CURVATURE / 2 * (self.Q - 2 * overlaps.m + overlaps.q)
