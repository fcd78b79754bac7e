"""The report as one HTML file: pictures inside, light and dark, readable on a phone."""

from __future__ import annotations

import base64
import io
import re
from importlib.resources import files
from pathlib import Path

from markdown_it import MarkdownIt

#: Width of the pictures on the first screen.
THUMBNAIL = 480
IMAGE = re.compile(r'<img src="([^"]+)" alt="([^"]*)" ?/?>')


def html(text: str, folder: Path) -> str:
    """Convert the report in Markdown to a page; pictures come from `folder`."""
    body = MarkdownIt("commonmark").enable("table").render(text)
    body = re.sub(r"<h2>(.*?)</h2>", _heading, body)
    body = body.replace("<table>", '<table class="gallery">', 1)
    body = body.replace("<table", '<div class="scroll"><table').replace(
        "</table>", "</table></div>"
    )
    start = body.find("</table>")
    first, rest = body[:start], body[start:]
    body = _embed(first, folder, THUMBNAIL) + _embed(rest, folder, None)
    template = files("reproduction").joinpath("page.html").read_text("utf-8")
    return template.replace("{{body}}", body)


def _heading(match: re.Match[str]) -> str:
    from reproduction.write import anchor

    return f'<h2 id="{anchor(match[1])}">{match[1]}</h2>'


def _embed(body: str, folder: Path, width: int | None) -> str:
    """Put the pictures into the page, with the dark one for dark screens."""

    def picture(match: re.Match[str]) -> str:
        path = folder / match[1]
        dark = path.with_name(f"{path.stem}-dark{path.suffix}")
        if not path.is_file():
            return match[2]
        image = f'<img src="{_data(path, width)}" alt="{match[2]}">'
        if not dark.is_file():
            return image
        source = f'<source media="(prefers-color-scheme: dark)" srcset="{_data(dark, width)}">'
        return f"<picture>{source}{image}</picture>"

    return IMAGE.sub(picture, body)


def _data(path: Path, width: int | None) -> str:
    """A picture as an address that contains it."""
    content = path.read_bytes()
    if width is not None:
        from PIL import Image

        with Image.open(path) as image:
            small = image.convert("RGB")
            small.thumbnail((width, width))
        buffer = io.BytesIO()
        small.save(buffer, "PNG", optimize=True)
        content = buffer.getvalue()
    return "data:image/png;base64," + base64.b64encode(content).decode()
