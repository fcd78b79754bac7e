"""MathJax beside the pages: one script that needs no fonts, no further files and no network."""

from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.fileutil import copy_asset_file

#: The package that holds MathJax, and the build of it that draws with SVG paths.
PACKAGE, SCRIPT = "sphinx-mathjax-offline", "tex-svg-full.js"


def script() -> Path:
    """Where the script is installed."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ExtensionError(f"the maths of the site needs the package {PACKAGE}")
    return Path(spec.origin).parent / "static" / "mathjax" / SCRIPT


def copy_script(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        copy_asset_file(script(), Path(app.outdir) / "_static" / SCRIPT)


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.mathjax")
    app.config.mathjax_path = SCRIPT
    # No menu: it is the only part that would fetch further files. Only what Sphinx marks as
    # maths is typeset.
    app.config.mathjax3_config = {"options": {"enableMenu": False}}
    app.connect("build-finished", copy_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
