"""The reproduction is an application of the library: it imports public names only."""

import ast
from pathlib import Path

import dotphase as dp
from extensions.public_names import GROUPS

ROOT = Path(__file__).resolve().parents[2] / "reproduction"
#: Modules with public names: the package and those of its stub.
MODULES = {name.rpartition(".")[0] for names in GROUPS.values() for name in names}
#: Building blocks of figures: every name of this module is public.
STYLE = "dotphase.plot.style"
PUBLIC = {name for names in GROUPS.values() for name in names} | MODULES | {STYLE}


def private_imports(code):
    """Imports of names of dotphase that are not public."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from (n for n in names if n.startswith("dotphase") and n not in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dotphase"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (n for n in names if n not in PUBLIC and node.module != STYLE)


def test_the_reproduction_imports_public_names_only():
    imports = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in ROOT.rglob("*.py")
        for name in private_imports(path.read_text(encoding="utf-8"))
    }
    assert not imports


def test_private_imports_are_noticed():
    assert not list(private_imports("from dotphase import solve, plot\nimport dotphase as dp"))
    assert list(private_imports("import dotphase.theory.solve")) == ["dotphase.theory.solve"]
    code = "def f():\n    from dotphase.theory.solve import solve, nothing"
    assert len(list(private_imports(code))) == 2
    assert hasattr(dp, "solve") and "dotphase.theory" not in MODULES
