"""How the documentation site is built: ``make docs``.

Everything a page needs is in the built folder: the maths script is copied from a package, fonts
are those of the reader's system, and no page asks another host for anything.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dotphase

sys.path.insert(0, str(Path(__file__).parent))
from extensions.compiler import compile_averages_well, compile_quickly

compile_quickly()
compile_averages_well(False, setattr)

project = "dotphase"
author = "the dotphase developers"
release = version = dotphase.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "extensions.commands",
    "extensions.dark_figures",
    "extensions.executed",
    "extensions.public_names",
    "extensions.local_mathjax",
]
exclude_patterns = ["_generated", "extensions", "static"]

myst_enable_extensions = ["amsmath", "attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "public-or-literal"
add_module_names = False
python_maximum_signature_line_length = 80
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autosummary_generate = False
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"dotphase {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["figures.js"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"


#: Navigation of the pages of source code, by their depth and the options.
_NAVIGATION: dict[Any, str] = {}


def reuse_navigation(
    app: Any, page: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Render the navigation once for all pages of source code of one depth: it is the same."""
    toctree: Callable[..., str] | None = context.get("toctree")
    if page.startswith("_modules/") and toctree is not None:

        def reused(**options: Any) -> str:
            key = page.count("/"), *sorted(options.items())
            if key not in _NAVIGATION:
                _NAVIGATION[key] = toctree(**options)
            return _NAVIGATION[key]

        context["toctree"] = reused


def setup(app: Any) -> None:
    # Before the theme, which asks for the navigation.
    app.connect("html-page-context", reuse_navigation, priority=100)
