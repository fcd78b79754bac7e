"""The check of the built site finds what is wrong with one."""

import zlib

import pytest

from check_site import Site, documented


@pytest.fixture
def site(tmp_path):
    """A folder with a sound page, to which a test adds what it likes."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "site.css").write_text("body { background: url('bird.png') }")
    (tmp_path / "_static" / "bird.png").write_bytes(b"")
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="_static/site.css?v=1"><h1 id="top">x</h1>'
        '<a href="#top">up</a><a href="sub/">sub</a><a href="https://arxiv.org/abs/1">out</a>'
        '<img src="_static/bird.png"><a href="#"><code class="xref py py-func">solve</code></a>'
    )
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text('<a href="../index.html#top">back</a>')
    return tmp_path


def add(site, html):
    page = site / "sub" / "index.html"
    page.write_text(page.read_text() + html)
    return list(Site(site).problems())


def test_a_sound_site_has_no_problems(site):
    checked = Site(site)
    assert list(checked.problems()) == []
    assert checked.outside == {"https://arxiv.org/abs/1"}


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ('<a href="gone.html">x</a>', "no such file: gone.html"),
        ('<a href="../index.html#gone">x</a>', "no such anchor on the page: ../index.html#gone"),
        ('<a href="../../secret">x</a>', "no such file: ../../secret"),
        ('<a href="https://nowhere">x</a>', "malformed link https://nowhere"),
        ('<a href="ftp://a.b/c">x</a>', "link of an unknown kind ftp://a.b/c"),
        ('<script src="https://cdn.example.org/a.js"></script>', "loaded from another host"),
        ('<script src="//cdn.example.org/a.js"></script>', "loaded from another host"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "loaded from another host"),
        ('<img srcset="a.png 1x, https://example.org/b.png 2x">', "loaded from another host"),
        ("<style>@import 'https://example.org/a.css';</style>", "loaded from another host"),
        ('<p style="background: url(https://example.org/a.png)">', "loaded from another host"),
        ('<img src="gone.png">', "no such file: gone.png"),
        ('<code class="xref py py-func"><span>slove</span></code>', "no such name"),
    ],
)
def test_problems_are_found(site, html, said):
    problems = add(site, html)
    assert any(said in problem for problem in problems)
    assert all(problem.startswith("sub/index.html: ") for problem in problems)


def test_fonts_of_style_sheets_are_looked_at(site):
    style = site / "_static" / "site.css"
    style.write_text("@font-face { src: url(https://fonts.example.org/a.woff2) }")
    assert "_static/site.css: loaded from another host" in next(Site(site).problems())


def test_an_empty_folder_is_no_site(tmp_path):
    assert list(Site(tmp_path).problems())


def test_names_are_read_from_the_inventory(tmp_path):
    lines = b"dotphase.solve py:function 1 api.html#$ -\nindex std:doc -1 index.html Index\n"
    head = b"# Sphinx inventory version 2\n# Project: x\n# Version: 1\n# zlib\n"
    (tmp_path / "objects.inv").write_bytes(head + zlib.compress(lines))
    assert documented(tmp_path / "objects.inv") == {"dotphase.solve"}
