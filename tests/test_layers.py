"""The rooms of the package, as CONTRIBUTING.md draws them: imports go downwards only."""

import ast
from pathlib import Path

import dotphase

ROOT = Path(dotphase.__file__).parent
CONTRIBUTING = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
#: Files of the hall that belong to no room: the package itself, and its command.
HALL = {"__init__", "__main__", "_lazy"}


def rooms():
    """The lines of the picture, the lowest first; each a list of rooms side by side."""
    picture = CONTRIBUTING.read_text(encoding="utf-8").split("<!-- rooms -->")[1]
    lines = [line.strip() for line in picture.splitlines() if line.startswith("    ")]
    return [line.split("  ")[0].split() for line in lines][::-1]


FLOORS = {room: floor for floor, line in enumerate(rooms()) for room in line}


def imports(file):
    """Modules of the package that a file imports, also inside of functions."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "dotphase":
            yield from (f"dotphase.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def wrong_imports(floors, files):
    """Imports of a room on the same floor or above; so no engine imports another."""
    for file in files:
        own = file.relative_to(ROOT).parts[0].removesuffix(".py")
        for name in imports(file):
            room = name.split(".")[1] if name.startswith("dotphase.") else own
            if own not in HALL and room in floors and room != own and floors[room] >= floors[own]:
                yield f"{file.relative_to(ROOT)} imports {name}"


def test_every_room_is_in_the_picture():
    found = {path.name.removesuffix(".py") for path in ROOT.iterdir() if path.suffix in (".py", "")}
    assert found - {"__pycache__", "py.typed"} == set(FLOORS) | HALL


def test_imports_point_downwards():
    assert not list(wrong_imports(FLOORS, sorted(ROOT.rglob("*.py"))))


def test_an_engine_that_imports_an_engine_is_noticed():
    together = FLOORS | {"theory": FLOORS["model"]}
    assert list(wrong_imports(together, sorted((ROOT / "theory").glob("*.py"))))
