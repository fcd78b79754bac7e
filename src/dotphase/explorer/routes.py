"""What the page may ask: one function per path, from a query to plain values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from dotphase.config.serialization import to_json_types
from dotphase.errors import InvalidInput
from dotphase.experiments.theory.attention import LAST_SENTENCE, attention_matrices
from dotphase.explorer import branch_curves, diagram, landscape
from dotphase.explorer.histogram_tab import EXAMPLE, look
from dotphase.explorer.lesson import (
    begin_theory,
    can_be_watched,
    in_the_limit,
    limits,
    read_lesson,
    read_runs,
)
from dotphase.explorer.point import Point, branches_of, whole
from dotphase.explorer.presets import presets
from dotphase.explorer.scheduler import MAX_EVALUATION, Scheduler
from dotphase.explorer.shared_jobs import Growing, Shelf
from dotphase.explorer.snippets import snippets
from dotphase.explorer.solver import Solver
from dotphase.explorer.subprocesses import Children
from dotphase.explorer.trainings import (
    DIMENSIONS,
    LAST_SEED,
    SEEDS,
    Trainings,
    read_training,
    starts,
)
from dotphase.figures.parts.style import COLORS, DARK_THEME_COLORS
from dotphase.theory.overlaps import Overlaps

Query = Mapping[str, str]
Read = Callable[[Query], Any]

#: Longest name that a window gives itself.
LONGEST_NAME = 32


class Explorer:
    """Everything behind the page; its methods are safe to call from many threads."""

    def __init__(self, default: Point | None = None) -> None:
        self.default = default or Point()
        across = self.default.family.across
        same = {"alpha": 1.0, **({across: self.default[across]} if across else {})}
        self.scheduler = Scheduler()
        self.solver = Solver(self.scheduler)
        self.children = Children()
        self.trainings = Trainings(self.children)
        self.theories = Shelf(16, partial(begin_theory, self.children))
        self.warm = threading.Event()
        self._warming: threading.Thread | None = None
        self.reads: dict[str, Read] = {
            "about": self.about,
            "point": self.point,
            "curve": self._growing(16, branch_curves.begin, alpha=1.0),
            "landscape": self._growing(16, landscape.begin),
            "diagram": self._growing(8, diagram.begin, **same),
            "attention": self.attention,
            "theory": self.theory,
            "snippets": self.snippets,
            "job": self.job,
            "histogram": lambda query: to_json_types(look(query.get("sequence") or EXAMPLE)),
        }
        self.writes: dict[str, Read] = {
            "train": self.train, "descend": self.descend, "cancel": self.cancel,
            "leave": self.leave,
        }  # fmt: skip

    def warm_up(self) -> None:
        """Compile in the background what the first answers need."""

        def work() -> None:
            with suppress(KeyboardInterrupt):
                try:
                    self.solver.warm_up(self.default)
                    model = self.default.model()
                    if model.loss is None:
                        attention_matrices(model, dict.fromkeys(branches_of(model)), 0)
                finally:
                    self.warm.set()

        self._warming = threading.Thread(target=work, name="dotphase-warm-up", daemon=True)
        self._warming.start()

    def close(self) -> None:
        """End everything that runs, and wait for it."""
        self.children.close()
        self.scheduler.close()
        self.solver.close()
        if self._warming is not None:
            self._warming.join(MAX_EVALUATION)

    def read(self, query: Query) -> Point:
        """The point of a query. It is of the family that the page was started with."""
        return self.default.family.read(query, self.default)

    def about(self, query: Query) -> dict[str, Any]:
        """What the inputs may be, and whether everything is compiled."""
        family = self.default.family
        return {
            "ready": self.warm.is_set(),
            "model": None if family.is_paper else family.reference,
            "defaults": self.default.to_dict(),
            "controls": family.controls(self.default),
            "across": family.across,
            "presets": presets(self.default),
            "d": DIMENSIONS,
            "seeds": SEEDS,
            "seed": (0, LAST_SEED),
            "sentence": (0, LAST_SENTENCE),
            "starts": starts(self.default.model()),
            "attention": self.default.model().loss is None,
            "lesson": limits() if family.is_paper else None,
            "colours": {"light": COLORS, "dark": DARK_THEME_COLORS},
        }

    def point(self, query: Query) -> dict[str, Any]:
        """The best numbers for a point now; theta is drawn in units of `scale`."""
        point = self.read(query)
        best = self.solver.best(point, _window(query))
        facts = {"scale": float(point.model().rho[0]), "winner": _winner(best["value"])}
        return to_json_types({**best, "point": point.to_dict(), **facts})

    def attention(self, query: Query) -> dict[str, Any]:
        """Attention matrices at a point, and how good the numbers are that they are of."""
        point = self.read(query)
        sentence = whole("sentence", query.get("sentence", "0"), 0, LAST_SENTENCE)
        best = self.solver.best(point, _window(query))["value"]
        overlaps = {branch: _overlaps(found) for branch, found in best.items()}
        with self.scheduler.urgent():
            matrices = attention_matrices(point.model(), overlaps, sentence)
        stages = {branch: found and found["stage"] for branch, found in best.items()}
        facts = {"point": point.to_dict(), "stages": stages, "sentence": sentence}
        return to_json_types({**matrices, **facts})

    def theory(self, query: Query) -> dict[str, Any]:
        """A descent in the limit of large d, as far as it is computed."""
        growing = self.theories.watch(
            in_the_limit(read_lesson(query, self.read(query))), _window(query)
        )
        with growing.lock:
            return growing.to_dict()

    def snippets(self, query: Query) -> dict[str, Any]:
        """Every view as Python and as a command."""
        point = self.read(query)
        asked = read_training(query, point)
        sentence = whole("sentence", query.get("sentence", "0"), 0, LAST_SENTENCE)
        sequence = query.get("sequence") or EXAMPLE
        lesson = read_lesson(query, point) if can_be_watched(point) else None
        return snippets(point, lesson, read_runs(query), asked, sentence, sequence)

    def train(self, query: Query) -> dict[str, Any]:
        """Begin a training."""
        point = self.read(query)
        asked = read_training(query, point)
        return {"job": self.trainings.begin("train", point=point.to_dict(), **asked)}

    def descend(self, query: Query) -> dict[str, Any]:
        """Begin gradient descent at finite d, recorded."""
        lesson, seeds = read_lesson(query, self.read(query)).to_dict(), read_runs(query)
        return {"job": self.trainings.begin("descend", lesson=lesson, seeds=seeds)}

    def job(self, query: Query) -> dict[str, Any]:
        """How far a training is."""
        return to_json_types(self.trainings.get(query.get("job", "")).to_dict())

    def cancel(self, query: Query) -> dict[str, Any]:
        """End a training."""
        return to_json_types(self.trainings.cancel(query.get("job", "")).to_dict())

    def leave(self, query: Query) -> dict[str, Any]:
        """A window is closed: what a process computes for it alone ends."""
        self.theories.leave(_window(query))
        return {}

    def _growing(
        self, capacity: int, begin: Callable[[Scheduler, Point, Growing], None], **same: Any
    ) -> Read:
        """A read of what grows from a point, and is the same wherever some of its numbers are."""
        shelf = Shelf(capacity, partial(begin, self.scheduler))

        def read(query: Query) -> dict[str, Any]:
            growing = shelf.watch(self.read(query).at(**same), _window(query))
            with growing.lock:
                return to_json_types(growing.to_dict())

        return read


def _window(query: Query) -> str:
    name = query.get("window", "nobody")
    if not name.isalnum() or len(name) > LONGEST_NAME:
        raise InvalidInput("window", name[:LONGEST_NAME], "must be letters and digits")
    return name


def _winner(values: Mapping[str, Any]) -> str | None:
    """The branch that is the lowest minimum; a saddle does not count."""
    there = {
        name: one["train_loss"]
        for name, one in values.items()
        if one and one["on_branch"] and one["stability"]["kind"] != "saddle"
    }
    return min(there, key=lambda name: there[name]) if there else None


def _overlaps(found: Mapping[str, Any] | None) -> Overlaps | None:
    if not found or not found["on_branch"]:
        return None
    return Overlaps(*(np.asarray(found["overlaps"][name]) for name in Overlaps._fields))
