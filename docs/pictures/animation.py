"""Draw the animation of the README: the lowest minimum jumps as alpha rises.

``python docs/pictures/animation.py`` computes everything it shows (one minute of CPU time) and
writes ``docs/images/jump.gif`` and, for print, the last frame ``jump-still.png``; both also for
dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

import dotphase as dp
from dotphase.plot.style import COLORS, house_style, ink_color, page_color, theme

IMAGES = Path(__file__).parents[1] / "images"
OMEGA = 0.3
ALPHAS = np.round(np.linspace(0.8, 2.0, 25), 3)
COLOR_COUNT = 128
#: Still frames at both ends of the animation.
PAUSE = 8
M = np.linspace(0, 0.46, 24)
THETA = np.linspace(0, 0.23, 24)
BRANCHES = ("positional", "semantic")
#: Sentences whose attention is shown: quantiles of the teacher's weight of token 1 on itself.
QUANTILES = (0.05, 0.5, 0.85, 0.97)
CAPTIONS = {
    "positional": "one mean pattern, plus noise: positional",
    "semantic": "varies with the teacher's: semantic",
}


@dataclass(frozen=True)
class Frame:
    """The landscape and the attention of its lowest minimum at one alpha.

    Attributes
    ----------
    profiles : for each branch its overlap, and the loss relative to a student that learned nothing
    lowest : the branch with the lowest training loss
    gap : training loss of the positional minimum minus that of the semantic one
    attention : matrices of teacher and student for the same sentences
    """

    alpha: float
    profiles: dict[str, tuple[np.ndarray, np.ndarray]]
    lowest: str
    gap: float
    attention: np.ndarray


def compute_frame(model: dp.Model, alpha: float) -> Frame:
    """Solve both branches and the landscape between them."""
    along_m = dp.analysis.landscape(model, alpha, M.tolist(), [0.0])
    along_theta = dp.analysis.landscape(model, alpha, [0.0], THETA.tolist())
    losses = {"positional": along_m.loss[0], "semantic": along_theta.loss[:, 0]}
    overlaps = {"positional": M, "semantic": THETA}
    solutions = {name: dp.solve(model, alpha, start=name, log2_points=14) for name in BRANCHES}
    gap = solutions["positional"].train_loss - solutions["semantic"].train_loss
    lowest = "semantic" if gap > 0 else "positional"
    return Frame(
        alpha=alpha,
        profiles={name: (overlaps[name], 1e3 * (loss - loss[0])) for name, loss in losses.items()},
        lowest=lowest,
        gap=1e3 * gap,
        attention=sample_attention(solutions[lowest]),
    )


def sample_attention(solution: dp.results.Solution) -> np.ndarray:
    """Sample attention matrices of teacher and student: (2, sentences, 2, 2)."""
    rng = np.random.default_rng(0)
    teacher_noise, student_noise = rng.standard_normal((2, 1000, 2, 1))
    model, overlaps = solution.model, solution.overlaps
    q, m, theta = (
        np.asarray(getattr(overlaps, name)).reshape(2, 1) for name in ("q", "m", "theta")
    )
    variance = np.asarray(model.sigma).reshape(2, 1) ** 2
    teacher = np.sqrt(variance) * teacher_noise
    free = np.sqrt(q - theta**2 / variance)
    student = m + theta / variance * teacher + free * student_noise
    matrices = np.stack([jax.vmap(model.teacher)(teacher), jax.vmap(model.student)(student)])
    order = np.argsort(matrices[0, :, 0, 0])
    return matrices[:, order[[int(1000 * quantile) for quantile in QUANTILES]]]


def draw(figure: Any, frames: list[Frame], frame: Frame) -> None:
    """Draw one frame."""
    figure.clf()
    figure.set_facecolor(page_color())
    color = COLORS[frame.lowest]
    grid = figure.add_gridspec(
        2, 2, height_ratios=(3, 1.1), width_ratios=(1.25, 1), left=0.05, right=0.985,
        bottom=0.15, top=0.86, wspace=0.22, hspace=0.25,
    )  # fmt: skip
    figure.text(
        0.05, 0.92, rf"$\alpha = {frame.alpha:.2f}$", fontsize=15, color=ink_color(), va="center"
    )
    figure.text(
        0.2, 0.92, f"the lowest minimum is {frame.lowest}", fontsize=13, color=color, va="center"
    )
    draw_landscape(figure.add_subplot(grid[0, 0]), frames, frame)
    draw_gap(figure.add_subplot(grid[1, 0]), frames, frame)
    draw_attention(figure, grid[:, 1], frame)


def draw_landscape(axis: Any, frames: list[Frame], frame: Frame) -> None:
    """Draw the loss along the overlap with the positions (left) and the teacher (right)."""
    for name, sign in (("positional", -1), ("semantic", 1)):
        overlap, loss = frame.profiles[name]
        x = sign * overlap / overlap[-1]
        axis.plot(x, loss, color=COLORS[name], lw=2.5)
        if name == frame.lowest:
            lowest = np.argmin(loss)
            axis.plot(x[lowest], loss[lowest], "o", ms=11, color=COLORS[name], mec=ink_color())
    deepest = min(loss.min() for each in frames for _, loss in each.profiles.values())
    axis.set(xlim=(-1, 1), ylim=(1.35 * deepest, -0.35 * deepest), xticks=[], yticks=[])
    axis.set_ylabel("training loss")
    axis.grid(visible=False)
    for name, x, side in (("positional", -0.97, "left"), ("semantic", 0.97, "right")):
        axis.text(x, 1.28 * deepest, f"more {name}", ha=side, color=COLORS[name])


def draw_gap(axis: Any, frames: list[Frame], frame: Frame) -> None:
    """Draw the difference of the two minima against alpha."""
    alphas, gaps = (np.array([getattr(each, key) for each in frames]) for key in ("alpha", "gap"))
    axis.axhline(0, color=ink_color(), lw=0.7)
    for name, where in (("positional", gaps <= 0), ("semantic", gaps >= 0)):
        shade = {"color": COLORS[name], "alpha": 0.35, "lw": 0}
        axis.fill_between(alphas, gaps, 0, where=where, interpolate=True, **shade)
    axis.plot(frame.alpha, frame.gap, "o", ms=7, color=COLORS[frame.lowest], mec=ink_color())
    margin = 0.03
    axis.set(xlim=(alphas[0] - margin, alphas[-1] + margin), yticks=[0])
    axis.set_ylim(gaps.min() - 0.15 * np.ptp(gaps), gaps.max() + 0.15 * np.ptp(gaps))
    axis.set(xlabel=r"sentences per dimension $\alpha$", ylabel="difference")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(visible=False)


def draw_attention(figure: Any, place: Any, frame: Frame) -> None:
    """Draw the attention matrices of teacher and student, one column for each sentence."""
    outer = place.subgridspec(2, 1, hspace=0.32)
    maps = ("Greys", "Blues" if frame.lowest == "semantic" else "Oranges")
    titles = ("the teacher's attention, four sentences", CAPTIONS[frame.lowest])
    colors = (ink_color(), COLORS[frame.lowest])
    rows = zip(("teacher", "student"), frame.attention, maps, titles, colors, strict=True)
    for row, (label, matrices, name, title, color) in enumerate(rows):
        inner = outer[row].subgridspec(1, len(matrices), wspace=0.12)
        for column, matrix in enumerate(matrices):
            axis = figure.add_subplot(inner[column])
            axis.imshow(matrix, cmap=name, vmin=0.25, vmax=0.9)
            for (i, j), weight in np.ndenumerate(matrix):
                ink = "white" if weight > 0.66 else "#222222"
                axis.text(j, i, f"{weight:.2f}", ha="center", va="center", fontsize=8, color=ink)
            axis.set(xticks=[], yticks=[])
            axis.grid(visible=False)
            if column == 0:
                axis.set_ylabel(label)
        left, _, width, _ = outer[row].get_position(figure).bounds
        top = outer[row].get_position(figure).y1
        figure.text(left + width / 2, top - 0.035, title, ha="center", fontsize=11.5, color=color)


def write(frames: list[Frame], dark: bool) -> None:
    """Write the animation and its last frame."""
    suffix = "-dark" if dark else ""
    with theme("dark" if dark else "light"), house_style(), plt.rc_context({"font.size": 11}):
        figure = plt.figure(figsize=(8.8, 3.9), dpi=80)
        order: Iterable[Frame] = [*[frames[0]] * PAUSE, *frames, *[frames[-1]] * PAUSE]
        animation = FuncAnimation(figure, lambda frame: draw(figure, frames, frame), order)
        target = IMAGES / f"jump{suffix}.gif"
        animation.save(target, PillowWriter(fps=6), dpi=105)
        shrink(target)
        draw(figure, frames, frames[-1])
        figure.savefig(IMAGES / f"jump-still{suffix}.png", dpi=130)
        plt.close(figure)


def shrink(path: Path) -> None:
    """Reduce an animation to one palette of few colors: half of the size."""
    from PIL import Image, ImageSequence

    with Image.open(path) as image:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(image)]
        times = [frame.info["duration"] for frame in ImageSequence.Iterator(image)]
    both = Image.new("RGB", (frames[0].width, 2 * frames[0].height))
    both.paste(frames[0])
    both.paste(frames[-1], (0, frames[0].height))
    palette = both.quantize(COLOR_COUNT, dither=Image.Dither.NONE)
    first, *rest = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    first.save(path, save_all=True, append_images=rest, duration=times, loop=0, optimize=True)


def main() -> None:
    model = dp.positional_semantic(omega=OMEGA)
    frames = [compute_frame(model, float(alpha)) for alpha in ALPHAS]
    for dark in (False, True):
        write(frames, dark)


if __name__ == "__main__":
    main()
