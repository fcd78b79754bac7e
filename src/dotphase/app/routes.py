"""What the page may ask: one function per path, from a query to plain values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from dotphase._numerics.plain import plain
from dotphase.app import curve, diagram, landscape
from dotphase.app.children import Children
from dotphase.app.histogram_tab import EXAMPLE, look
from dotphase.app.lesson import begin_theory, in_the_limit, limits, read_lesson, read_runs
from dotphase.app.scheduler import LONGEST_STEP, Scheduler
from dotphase.app.shelf import Growing, Shelf
from dotphase.app.snippets import snippets
from dotphase.app.solver import BRANCHES, Solver
from dotphase.app.state import Point, read_point, sliders, whole
from dotphase.app.trainings import DIMENSIONS, LAST_SEED, SEEDS, Trainings, read_training, starts
from dotphase.errors import InvalidInput
from dotphase.experiments.attention import LAST_SENTENCE, attention_matrices
from dotphase.figures.parts.style import COLOURS, COLOURS_ON_DARK
from dotphase.theory.overlaps import Overlaps

Query = Mapping[str, str]
Read = Callable[[Query], Any]

#: Longest name that a window gives itself.
LONGEST_NAME = 32


class Explorer:
    """Everything behind the page; its methods are safe to call from many threads."""

    def __init__(self) -> None:
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
            "curve": self._growing(16, curve.begin, alpha=1.0),
            "landscape": self._growing(16, landscape.begin),
            "diagram": self._growing(8, diagram.begin, alpha=1.0, omega=0.0),
            "attention": self.attention,
            "theory": self.theory,
            "snippets": self.snippets,
            "job": self.job,
            "histogram": lambda query: plain(look(query.get("sequence") or EXAMPLE)),
        }
        self.writes: dict[str, Read] = {
            "train": self.train, "descend": self.descend, "cancel": self.cancel,
            "leave": self.leave,
        }  # fmt: skip

    def warm_up(self) -> None:
        """Compile in the background what the first answers need."""

        def work() -> None:
            try:
                self.solver.warm_up()
                attention_matrices(Point().model(), dict.fromkeys(BRANCHES), 0)
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
            self._warming.join(LONGEST_STEP)

    def about(self, query: Query) -> dict[str, Any]:
        """What the inputs may be, and whether everything is compiled."""
        return {
            "ready": self.warm.is_set(),
            "defaults": Point().to_dict(),
            "sliders": sliders(),
            "d": DIMENSIONS,
            "seeds": SEEDS,
            "seed": (0, LAST_SEED),
            "sentence": (0, LAST_SENTENCE),
            "starts": starts(),
            "lesson": limits(),
            "colours": {"light": COLOURS, "dark": COLOURS_ON_DARK},
        }

    def point(self, query: Query) -> dict[str, Any]:
        """The best numbers for a point now."""
        point = read_point(query)
        best = self.solver.best(point, _window(query))
        return plain({**best, "point": point.to_dict(), "winner": _winner(best["value"])})

    def attention(self, query: Query) -> dict[str, Any]:
        """Attention matrices at a point."""
        point = read_point(query)
        sentence = whole("sentence", query.get("sentence", "0"), 0, LAST_SENTENCE)
        best = self.solver.best(point, _window(query))["value"]
        overlaps = {branch: _overlaps(best[branch]) for branch in BRANCHES}
        with self.scheduler.urgent():
            matrices = attention_matrices(point.model(), overlaps, sentence)
        return plain({**matrices, "sentence": sentence})

    def theory(self, query: Query) -> dict[str, Any]:
        """A descent in the limit of large d, as far as it is computed."""
        growing = self.theories.watch(in_the_limit(read_lesson(query)), _window(query))
        with growing.lock:
            return growing.to_dict()

    def snippets(self, query: Query) -> dict[str, Any]:
        """Every view as Python and as a command."""
        asked = read_training(query)
        sentence = whole("sentence", query.get("sentence", "0"), 0, LAST_SENTENCE)
        sequence = query.get("sequence") or EXAMPLE
        return snippets(read_lesson(query), read_runs(query), asked, sentence, sequence)

    def train(self, query: Query) -> dict[str, Any]:
        """Begin a training."""
        point = read_point(query).to_dict()
        return {"job": self.trainings.begin("train", point=point, **read_training(query))}

    def descend(self, query: Query) -> dict[str, Any]:
        """Begin gradient descent at finite d, recorded."""
        lesson, seeds = read_lesson(query).to_dict(), read_runs(query)
        return {"job": self.trainings.begin("descend", lesson=lesson, seeds=seeds)}

    def job(self, query: Query) -> dict[str, Any]:
        """How far a training is."""
        return plain(self.trainings.get(query.get("job", "")).to_dict())

    def cancel(self, query: Query) -> dict[str, Any]:
        """End a training."""
        return plain(self.trainings.cancel(query.get("job", "")).to_dict())

    def leave(self, query: Query) -> dict[str, Any]:
        """A window is closed: what a process computes for it alone ends."""
        self.theories.leave(_window(query))
        return {}

    def _growing(
        self, capacity: int, begin: Callable[[Scheduler, Point, Growing], None], **same: float
    ) -> Read:
        """A read of what grows from a point, and is the same wherever some of its numbers are."""
        shelf = Shelf(capacity, partial(begin, self.scheduler))

        def read(query: Query) -> dict[str, Any]:
            growing = shelf.watch(read_point(query).at(**same), _window(query))
            with growing.lock:
                return plain(growing.to_dict())

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
        if one and one["there"] and one["stability"]["kind"] != "saddle"
    }
    return min(there, key=lambda name: there[name]) if there else None


def _overlaps(found: Mapping[str, Any] | None) -> Overlaps | None:
    if not found or not found["there"]:
        return None
    return Overlaps(*(np.asarray(found["overlaps"][name]) for name in Overlaps._fields))
