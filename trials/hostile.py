"""Values that nobody should be able to do harm with."""

from __future__ import annotations

from typing import Any

import numpy as np

LONG = "9" * 5000

#: Texts in the place of a number.
NUMBERS = (
    "nan", "inf", "-inf", "1e400", "-1", "0", "", " ", "½", "0x10", "1_000", "1,5", "one", LONG,
    "1e-400", "--", "1;2", "\x00", "é", "1e308", "-0.0", "1" * 30, "[1]", "{}", "None", "true",
    "$(id)", "%s%n", "../..", "\ud800", "1e-300", "1e300",
)  # fmt: skip
#: Texts in the place of a whole number.
WHOLES = (*NUMBERS, "1.5", "10000000000", "1" + "0" * 12, "1" + "0" * 30, "-5", "1e3", "+-1")
#: Texts in the place of a word.
WORDS = ("", "Semantic", "nothing", "semantic,positional", "\x00", "é" * 200, "../x", "-", LONG)
#: Texts in the place of a grid.
GRIDS = (
    "1:2", "1:2:0", "2:1:3", "1:1:2", ":::", "a:b:c", "1:2:-3", "1:2:1000000000", "nan:1:2",
    "1:inf:2", "0:1:2", "-1:1:2", "1:2:2:2", "", "1:2:" + LONG, "1:2:1.5", "1,2", ":", LONG,
)  # fmt: skip
#: Texts in the place of a file or a folder.
PATHS = (
    "", " ", "/proc/a.nc", "/proc/a.png", "no/such/folder/a.nc", "a.txt", "folder.nc", "folder.png",
    "n" * 300 + ".nc", "n" * 300 + ".png", "/", ".", "..", "a\x00.nc", "a.nc/b.nc", "\ud800.nc",
    "/dev/null/x.nc", "~/x", "-", "file.txt", "x/" * 3000,
)  # fmt: skip

#: Objects in the place of anything.
OBJECTS: tuple[Any, ...] = (
    None, float("nan"), float("inf"), -float("inf"), -1, 0, True, 10**30, 10**5000, 1e308, 5e-324,
    "", "x", "1", b"1", [], [1.0], [[1.0]], [float("nan")], {}, {"a": 1}, (), (1, 2), set(), object,
    object(), 1j, np.array([]), np.array([1.0, np.nan]), np.zeros((2, 3)), np.float32("nan"),
    np.array(["a"]), np.array([None]), np.datetime64("2020-01-01"), lambda *a: None,
    lambda *a, **k: 1 / 0, range(3), "\x00", "é" * 500, Ellipsis, NotImplemented, int, 2**63,
    -(2**63), 1.5, "semantic", [1, [2]], np.int64(3), np.array(2.0), iter([1.0]), np.bool_(True),
)  # fmt: skip
