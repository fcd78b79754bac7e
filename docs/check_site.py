"""Check a built site: no broken links, and no files from other hosts.

    python docs/check_site.py out/site

Links within the site must lead to a file, and their fragments to an element of it. Scripts, style
sheets, images and fonts must be files of the site. Links to other hosts must be well formed; they
are listed, but not followed. Every name of the package to which a page refers must be documented,
and every public name must be in the index of the API reference. Prints one line for each problem;
the exit code is 1 if there is any.
"""

from __future__ import annotations

import builtins
import re
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that make a browser load something, by element.
ASSETS = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
    "use": ("href",),
}
#: Kinds of <link> that are only read as addresses.
QUIET_LINKS = {"index", "search", "next", "prev", "author", "copyright", "canonical", "license"}
#: Schemes of links that leave the site.
OUTSIDE = ("http", "https", "mailto")
#: Addresses in style sheets.
IN_STYLE = re.compile(r"""(?:url\(|@import\s+)\s*["']?([^"')\s;]+)""")


class Page(HTMLParser):
    """Links, assets and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.unresolved: list[str] = []
        self._in_style = False
        self._in_link = self._in_name = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        self._in_style = tag == "style"
        if tag == "a":
            self._in_link = True
        # Sphinx writes the name of an unresolved reference without a link.
        kinds = values.get("class", "").split()
        if tag == "code":
            self._in_name = {"xref", "py"} <= set(kinds) and not self._in_link
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and "href" in values:
            quiet = set(values.get("rel", "").split()) <= QUIET_LINKS
            (self.links if quiet else self.assets).append(values["href"])
        for name in ASSETS.get(tag, ()):
            if name in values:
                self.assets += _addresses(values[name]) if name == "srcset" else [values[name]]
        self.assets += IN_STYLE.findall(values.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._in_link = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.assets += IN_STYLE.findall(data)
        if self._in_name and data.strip():
            self.unresolved += [data.strip()] if not hasattr(builtins, data.strip()) else []
            self._in_name = False


def _addresses(srcset: str) -> list[str]:
    return [part.split()[0] for part in srcset.split(",") if part.strip()]


class Site:
    """A folder of pages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.pages = {
            path: Page(path.read_text(encoding="utf-8"))
            for path in sorted(self.folder.rglob("*.html"))
        }
        self.outside: set[str] = set()

    def problems(self) -> Iterator[str]:
        """Describe every problem in one line."""
        if not self.pages:
            yield f"{self.folder}: no pages"
        for path, page in self.pages.items():
            name = path.relative_to(self.folder)
            for link in page.links:
                yield from (f"{name}: {problem}" for problem in self._link(path, link))
            for asset in page.assets:
                yield from (f"{name}: {problem}" for problem in self._asset(path, asset))
            for reference in page.unresolved:
                yield f"{name}: no such name in the API reference: {reference}"
        for path in sorted(self.folder.rglob("*.css")):
            name = path.relative_to(self.folder)
            for asset in IN_STYLE.findall(path.read_text(encoding="utf-8")):
                yield from (f"{name}: {problem}" for problem in self._asset(path, asset))

    def _link(self, page: Path, address: str) -> Iterator[str]:
        parts = urlsplit(address)
        if parts.scheme in OUTSIDE:
            self.outside.add(address)
            host = parts.hostname or ""
            if parts.scheme != "mailto" and ("." not in host or re.search(r"\s", address)):
                yield f"malformed link {address}"
        elif parts.scheme or parts.netloc:
            yield f"link of an unknown kind {address}"
        else:
            yield from self._inside(page, address)

    def _asset(self, page: Path, address: str) -> Iterator[str]:
        parts = urlsplit(address)
        if parts.scheme == "data" or address.startswith("#"):
            return
        if parts.scheme or parts.netloc:
            yield f"loaded from another host: {address}"
        else:
            yield from self._inside(page, address)

    def _inside(self, page: Path, address: str) -> Iterator[str]:
        parts = urlsplit(address)
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if target.is_dir():
            target = target / "index.html"
        if not target.is_relative_to(self.folder) or not target.is_file():
            yield f"no such file: {address}"
        elif parts.fragment and target in self.pages:
            anchors = self.pages[target].anchors
            if unquote(parts.fragment) not in anchors and parts.fragment not in anchors:
                yield f"no such anchor on the page: {address}"


def documented(inventory: Path) -> set[str]:
    """Names in the index of the API reference, from the inventory that Sphinx writes."""
    raw = inventory.read_bytes().split(b"\n", 4)[4]
    lines = zlib.decompress(raw).decode().splitlines()
    return {line.split()[0] for line in lines if line.split()[1].startswith("py:")}


def main(folder: str) -> int:
    import dotphase

    site = Site(Path(folder))
    problems = list(site.problems())
    missing = {f"dotphase.{name}" for name in dotphase.__all__} - documented(
        site.folder / "objects.inv"
    )
    problems += [f"not in the API reference: {name}" for name in sorted(missing)]
    for line in problems:
        print(line)
    links = sum(len(page.links) + len(page.assets) for page in site.pages.values())
    print(f"{len(site.pages)} pages, {links} links and assets, {len(problems)} problems")
    print(f"not followed: {len(site.outside)} links to other hosts")
    for address in sorted(site.outside):
        print(f"  {address}")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/check_site.py FOLDER")
    sys.exit(main(sys.argv[1]))
