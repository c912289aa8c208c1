"""The pages of the web site: every link leads somewhere, nothing is asked of another host, bets are not given away."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote

import pytest

from mqlab.answers import answers
from mqlab.labs.errors import LabError
from website.layout import BrokenLinkError, Linker
from website.lite import without_doc_links
from website.live_pages import PLAY_PAGE
from website.markdown import to_html
from website.notebooks import lab_to_html
from website.pictures import views_of
from website.stages import SCENES
from website.static import build_pages

ROOT = Path(__file__).parents[2]
MOST_OF_FIRST_MINUTE = 300_000
"""Bytes that a reader's browser takes for the first page and a minute of its stage."""
VIEW = '<svg class="mq-stage"></svg>'


class Page(HTMLParser):
    """What a page asks for: its links, its pictures and stylesheets, and the anchors in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given["id"]} if "id" in given else set()
        self.links += [given["href"]] if tag == "a" and "href" in given else []
        self.loads += [given[name] for name in ("src", "href") if name in given and tag in ("img", "link", "iframe")]
        self.scripts += [given.get("src", "in the page")] if tag == "script" else []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as it is built, without JupyterLite."""
    target = tmp_path_factory.mktemp("site")
    build_pages(ROOT, target, lambda _: {})
    return target


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """All pages, by their place."""
    found = site.rglob("*.html")
    return {path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8")) for path in found}


def links(pages: dict[str, Page]) -> Iterator[tuple[str, str, str]]:
    """Every link inside of the site: the page that has it, the place that it leads to, the anchor there."""
    for place, page in pages.items():
        for link in [*page.links, *page.loads]:
            if not re.match(r"[a-z]+:", link):
                path, _, anchor = unquote(link).partition("#")
                yield place, normpath(Path(place).parent / path.partition("?")[0]) if path else place, anchor


def test_every_lab_and_every_page_of_the_documentation_is_there(pages: dict[str, Page]) -> None:
    wanted = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "labs").glob("*.ipynb"), ROOT / "README.md"]
    assert {path.relative_to(ROOT).with_suffix(".html").as_posix() for path in wanted} <= pages.keys()


def test_every_link_leads_to_a_page_or_a_file(site: Path, pages: dict[str, Page]) -> None:
    broken = [
        (place, target)
        for place, target, _ in links(pages)
        if not target.startswith("lite/") and not (site / target).is_file()
    ]
    assert broken == []


def test_every_link_into_a_page_finds_its_heading(pages: dict[str, Page]) -> None:
    inside = [link for link in links(pages) if link[2] and link[1] in pages and link[1] != PLAY_PAGE]
    assert inside
    assert [link for link in inside if link[2] not in pages[link[1]].anchors] == []


def test_every_lab_is_reached_from_the_front_page(pages: dict[str, Page]) -> None:
    wanted = {f"labs/{path.stem}.html" for path in (ROOT / "labs").glob("*.ipynb")}
    assert wanted <= {target for place, target, _ in links(pages) if place == "index.html"}


def test_no_page_loads_anything_from_another_host(pages: dict[str, Page]) -> None:
    loads = [url for page in pages.values() for url in [*page.loads, *page.scripts]]
    assert [url for url in loads if re.match(r"(?!data:)[a-z]+:|//", url)] == []


def test_only_pages_on_which_something_moves_run_a_script_and_it_is_the_sites_own(pages: dict[str, Page]) -> None:
    scripts = {place: [normpath(Path(place).parent / url) for url in page.scripts] for place, page in pages.items()}
    labs = {path.stem for path in (ROOT / "labs").glob("*.ipynb")}
    moving = {"index.html", *(f"labs/{lab}.html" for lab in labs if lab[:2] in SCENES)}
    assert {place: found for place, found in scripts.items() if found} == {
        PLAY_PAGE: ["play/play.js"],
        **{place: ["stages/stage.js"] for place in moving},
    }


def test_every_lab_has_its_scenes_and_they_are_small(site: Path) -> None:
    for lab in (ROOT / "labs").glob("*.ipynb"):
        page = (site / "labs" / f"{lab.stem}.html").read_text(encoding="utf-8")
        assert re.findall(r'data-recording="\.\./stages/([\w-]+)"', page) == list(SCENES[lab.stem[:2]])
    front = [site / "index.html", site / "style.css", site / "stages" / "demo-wide.gz", *site.glob("stages/stage.*")]
    assert sum(path.stat().st_size for path in front) < MOST_OF_FIRST_MINUTE
    assert max(path.stat().st_size for path in (site / "stages").glob("*.gz")) < MOST_OF_FIRST_MINUTE / 2


def test_every_answer_opens_its_world_by_a_link(site: Path) -> None:
    cells = json.loads((site / "play" / "answers.json").read_text(encoding="utf-8"))
    assert cells.keys() == {answer.name for answer in answers()}
    for name, given in cells.items():
        page = (site / "docs" / "answers" / f"{name}.html").read_text(encoding="utf-8")
        assert f'href="../../play/index.html#answer={name}"' in page
        assert given


def test_the_film_of_the_readme_leads_to_what_moves(site: Path) -> None:
    page = (site / "README.html").read_text(encoding="utf-8")
    assert re.search(r'<a href="index.html"><img [^>]*demo\.webp[^>]*></a>', page)


def test_what_comes_of_a_bet_stands_behind_a_click(site: Path) -> None:
    cells = json.loads((ROOT / "labs" / "00_tour.ipynb").read_text(encoding="utf-8"))["cells"]
    hidden = [cell for cell in cells if cell["metadata"].get("jupyter", {}).get("outputs_hidden") and cell["outputs"]]
    page = (site / "labs" / "00_tour.html").read_text(encoding="utf-8")
    assert len(hidden) == page.count('<details class="bet">') > 0


def test_the_picture_of_a_live_view_stands_in_the_place_of_its_text() -> None:
    lab = ROOT / "labs" / "00_tour.ipynb"
    cells = [cell for cell in json.loads(lab.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    views = [at for at, cell in enumerate(cells) if "Stepper(" in "".join(cell["source"])]
    assert lab_to_html(lab, {}).count("&lt;Stepper") == len(views) == 3
    assert lab_to_html(lab, {views[0]: VIEW}).count("&lt;Stepper") == 2
    page = lab_to_html(lab, dict.fromkeys(views, VIEW))
    assert VIEW in page
    assert "&lt;Stepper" not in page


def notebook_of(directory: Path, *sources: str) -> Path:
    """A clone with nothing but a notebook of code cells in it; the notebook."""
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None} for _ in sources]
    made = [
        {**cell, "id": f"cell-{at}", "source": source}
        for at, (cell, source) in enumerate(zip(cells, sources, strict=True))
    ]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    written = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": made}
    (directory / "labs").mkdir()
    (directory / "labs" / "00_small.ipynb").write_text(json.dumps(written), encoding="utf-8")
    return directory / "labs" / "00_small.ipynb"


def test_a_lab_is_run_for_its_pictures_once_until_it_changes(tmp_path: Path) -> None:
    build = "from mqlab.scenarios import get\nfrom mqlab_widgets import Stepper\nlab = get('demo').build(7)"
    notebook = notebook_of(tmp_path, build, "lab.run_for(seconds=1)", "Stepper(lab)")
    views = views_of(tmp_path, notebook, tmp_path / "kept")
    assert list(views) == [2]
    assert views[2].startswith('<svg class="mq-stage"')
    assert "broker-a" in views[2]
    (kept,) = (tmp_path / "kept").iterdir()
    kept.write_text('{"2": "as it was kept"}', encoding="utf-8")
    assert views_of(tmp_path, notebook, tmp_path / "kept") == {2: "as it was kept"}
    notebook.write_text(notebook.read_text(encoding="utf-8").replace("seconds=1", "seconds=2"), encoding="utf-8")
    assert views_of(tmp_path, notebook, tmp_path / "kept")[2].startswith("<svg")
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_a_lab_that_fails_ends_the_build_and_nothing_is_kept(tmp_path: Path) -> None:
    notebook = notebook_of(tmp_path, "1 / 0")
    with pytest.raises(LabError, match=r"lab 00_small:\n.* fails: ZeroDivisionError"):
        views_of(tmp_path, notebook, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_link_between_files_becomes_one_between_pages(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "picture.png").write_bytes(b"")
    linker = Linker(tmp_path, {"docs/labs.md", "docs/a.md"})
    assert linker.linked('<a href="docs/labs.md#the-source">', "README.md") == '<a href="docs/labs.html#the-source">'
    assert linker.linked('<a href="../docs/labs.md">', "labs/00.ipynb") == '<a href="../docs/labs.html">'
    assert linker.linked('<img src="picture.png">', "docs/a.md") == '<img src="picture.png">'
    assert linker.copied == {"docs/picture.png"}
    away = '<a href="https://example.org/x.md">'
    assert linker.linked(away, "README.md") == away


@pytest.mark.parametrize("link", ["nowhere.md", "docs/nothing.png", "../outside.md", "docs"])
def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    with pytest.raises(BrokenLinkError, match=f"README.md points to {link}"):
        Linker(tmp_path, {"README.md"}).linked(f'<a href="{link}">', "README.md")


def test_a_lab_in_the_browser_says_where_on_the_site_a_page_is() -> None:
    told = without_doc_links("See [the list](docs/seeds.md#articles) and [a page](https://example.org).")
    assert told == "See the list (on this web site, under Documentation) and [a page](https://example.org)."


def test_headings_have_the_anchors_that_readers_of_markdown_expect() -> None:
    made = to_html("## What `make site` does, and why\n\n## Two\n\n## Two")
    assert re.findall(r'id="([^"]+)"', made) == ["what-make-site-does-and-why", "two", "two-1"]


def test_code_is_coloured_where_its_language_is_known_and_kept_where_not() -> None:
    assert '<span class="kn">import</span>' in to_html("```python\nimport mqlab\n```")
    assert "x &lt; y" in to_html("```nonsense\nx < y\n```")
