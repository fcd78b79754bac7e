"""MathJax as a file of the site: one script without fonts, further files or network access."""

from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.fileutil import copy_asset_file

#: The package that contains MathJax, and its build that draws with SVG paths.
PACKAGE, SCRIPT = "sphinx-mathjax-offline", "tex-svg-full.js"


def script() -> Path:
    """Path of the installed script."""
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
    # The menu is the only part that would fetch further files.
    app.config.mathjax3_config = {"options": {"enableMenu": False}}
    app.connect("build-finished", copy_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
