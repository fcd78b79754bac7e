"""Figures that have a dark copy: each is shown on the page it was drawn for."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class DarkFigures(SphinxTransform):
    """Beside ``name.png`` shows ``name-dark.png`` on dark pages, if there is such a file."""

    # Before images are collected.
    default_priority = 200

    def apply(self, **kwargs: object) -> None:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for image in list(self.document.findall(nodes.image)):
            place = Path(image["uri"])
            dark = place.with_name(f"{place.stem}-dark{place.suffix}")
            if "://" in image["uri"] or not (folder / dark).is_file():
                continue
            other = image.deepcopy()
            other["uri"] = dark.as_posix()
            image["classes"].append("only-light")
            other["classes"].append("only-dark")
            image.parent.insert(image.parent.index(image) + 1, other)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(DarkFigures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
