"""The layers of the package: lower ones never import upper ones."""

import ast
from pathlib import Path

import dotphase

LOWER = ["errors", "precision", "plain", "validate", "smalllinalg", "taylor", "spectrum"]
LOWER += ["model", "paper", "lengths", "softmax", "untied_softmax", "derivatives", "glm"]
SHARED = ["fields", "prox", "fixedpoint", "data", "reduced", "generalisation", "memory"]
SHARED += ["embeddings"]
ENGINES = ["baselines", "theory", "training", "message_passing", "histogram"]
UPPER = ["study", "figures", "report", "app", "cli", "__main__"]
ORDER = LOWER + SHARED + ENGINES + UPPER
ROOT = Path(dotphase.__file__).parent


def _layer(name):
    return name.split(".")[1] if "." in name else None


def test_imports_point_downwards():
    wrong = []
    for file in sorted(ROOT.rglob("*.py")):
        own = file.relative_to(ROOT).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        assert own in ORDER, f"{own} has no place in the order of layers"
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module == "dotphase":
                names = [f"dotphase.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                layer = _layer(name) if name.startswith("dotphase.") else None
                if layer in ORDER and ORDER.index(layer) > ORDER.index(own):
                    wrong.append(f"{file.name} imports {name}")
    assert not wrong
