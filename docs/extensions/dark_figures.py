"""Figures with a dark copy, which is shown in the dark theme."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class DarkFigures(SphinxTransform):
    """Show ``name-dark.png`` instead of ``name.png`` in the dark theme, if the file exists."""

    # Before images are collected.
    default_priority = 200

    def apply(self, **kwargs: object) -> None:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for image in list(self.document.findall(nodes.image)):
            path = Path(image["uri"])
            dark = path.with_name(f"{path.stem}-dark{path.suffix}")
            if "://" in image["uri"] or not (folder / dark).is_file():
                continue
            dark_image = image.deepcopy()
            dark_image["uri"] = dark.as_posix()
            image["classes"].append("only-light")
            dark_image["classes"].append("only-dark")
            image.parent.insert(image.parent.index(image) + 1, dark_image)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(DarkFigures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
