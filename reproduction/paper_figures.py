"""The figures and results of the paper in order: findings, and the numbers compared first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Line:
    """One comparison of the first table, found among the rows of an item.

    Attributes
    ----------
    item, quantity : name of the item, and quantity of the row
    compared : what is compared, in words; ``{omega}`` and others are conditions of the row
    at : conditions that the row must have
    """

    item: str
    quantity: str
    compared: str
    at: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PaperFigure:
    """One figure or result of the paper.

    Attributes
    ----------
    title : what it shows; heading of its section
    finding : what the paper found with it
    image : figure of an item that is shown first, without its ending
    items : items of its section
    lines : comparisons of the first table
    """

    title: str
    finding: str
    image: str
    items: tuple[str, ...]
    lines: tuple[Line, ...]


def _released(table: str, compared: str) -> Line:
    """The width of the differences of training losses of a released table."""
    quantity = "width of the differences of train_loss"
    return Line("released", quantity, compared, {"table": table})


_WIDTH = "{values} released training losses: width of the differences, in standard errors"
_SEMANTIC, _POSITIONAL = {"mechanism": "semantic"}, {"mechanism": "positional"}

PAPER_FIGURES = (
    PaperFigure(
        "Counting letters in two ways",
        "A small transformer that counts letters attends either to equal letters or to fixed "
        "positions. Both count well.",
        "histogram-attention",
        ("histogram",),
        (
            Line("histogram", "diagonal", "attention of a letter to itself, positional network",
                 _POSITIONAL),
            Line("histogram", "B on each B", "attention of B to each B, semantic network",
                 _SEMANTIC),
            Line("histogram", "accuracy", "accuracy, positional network", _POSITIONAL),
            Line("histogram", "accuracy", "accuracy, semantic network", _SEMANTIC),
        ),
    ),
    PaperFigure(
        "The transition",
        "With more data the lowest minimum of the loss jumps from positional to semantic, and "
        "later the semantic one beats a linear layer (omega = .3).",
        "transition",
        ("transition",),
        (
            Line("transition", "alpha_c", "alpha_c, where the losses are equal"),
            Line("transition", "alpha_l", "alpha_l, where attention beats the linear layer"),
            Line("transition", "test_error", "test error of trained students, semantic start, "
                 "alpha = {alpha}", {"start": "semantic", "alpha": 2.0}),
            Line("transition", "theta", "theta of the theory and of trained students, alpha = "
                 "{alpha}", {"branch": "semantic", "alpha": 1.005}),
        ),
    ),
    PaperFigure(
        "Phase diagram",
        "The more positional the teacher (omega), the later both changes.",
        "phase-standard",
        ("phase-standard",),
        (
            Line("phase-standard", "alpha_c", "alpha_c at omega = {omega}", {"omega": 0.1}),
            Line("phase-standard", "alpha_c", "alpha_c at omega = {omega}", {"omega": 0.4}),
            Line("phase-standard", "alpha_l", "alpha_l at omega = {omega}", {"omega": 0.2}),
            Line("phase-standard", "alpha_c of trained students", "alpha_c of the theory and of "
                 "trained students, omega = {omega}", {"omega": 0.08}),
            _released("maps standard", _WIDTH),
        ),
    ),
    PaperFigure(
        "Another positional pattern",
        "With another matrix A training has the same two regions.",
        "phase-other",
        ("phase-other",),
        (_released("maps other", _WIDTH),),
    ),
    PaperFigure(
        "Concentration",
        "Trained students approach the theory as d grows.",
        "concentration",
        ("concentration",),
        (
            Line("concentration", "test_error", "test error of trained students, extrapolated in "
                 "d, and of the theory", {"branch": "semantic"}),
        ),
    ),
    PaperFigure(
        "Other parameters",
        "The same two minima appear for other omega, sigma and ridge.",
        "slices",
        ("slices",),
        (_released("slices", _WIDTH),),
    ),
    PaperFigure(
        "A student of rank two",
        "With two directions one becomes semantic and one positional.",
        "rank2",
        ("rank2",),
        (
            Line("rank2", "theta of the lowest minimum, mean over cells", "theta of the theory "
                 "and of trained students, mean of {cells} cells"),
        ),
    ),
    PaperFigure(
        "Random starts",
        "From random weights, training does not always find the lower minimum.",
        "starts",
        ("starts",),
        (
            Line("starts", "train_loss", "training loss by Adam and by gradient descent",
                 {"start": "semantic"}),
        ),
    ),
    PaperFigure(
        "Distance of the two solutions",
        "Networks released from the constraint to one mechanism stay near their solution.",
        "distances-landscape",
        ("distances",),
        (
            Line("distances", "after release", "distance moved after the release, positional "
                 "network", _POSITIONAL),
        ),
    ),
    PaperFigure(
        "Message passing",
        "Message passing follows state evolution to a minimum of the loss.",
        "gamp",
        ("gamp",),
        (
            Line("gamp", "cosine with the trained student", "cosine of its weights and those "
                 "of training"),
        ),
    ),
)  # fmt: skip
