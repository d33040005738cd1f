"""What MkDocs calls while it builds the site (mkdocs.yml, `hooks`)."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import links  # noqa: E402
import plain  # noqa: E402
import reference  # noqa: E402
import sources  # noqa: E402
import timelines  # noqa: E402
import tree  # noqa: E402

FIRST_HEADING = re.compile(r"^# +(.+)$", re.M)
COMMENT = re.compile(r"\A<!--.*?-->\n+", re.S)


class Site:
    """What is known of the pages while the site is built."""

    def __init__(self) -> None:
        self.places = tree.included()  # path in the tree: place in the site
        self.origins = {place: path for path, place in self.places.items()}
        self.made = reference.pages()  # place in the site: Markdown
        self.shown = sources.linked(self.places)  # path in the tree: place in the site
        self.markdown: dict[str, str] = {}

    def origin(self, place: str) -> str:
        """Returns the path in the tree of a page, or the one it would have."""
        return self.origins.get(place, tree.PAGES + place)

    def place(self, path: str) -> str | None:
        """Returns the place in the site of a path in the tree."""
        if path.startswith(tree.PAGES):
            return path.removeprefix(tree.PAGES)
        return self.places.get(path) or self.shown.get(path)

    def link(self, page: str, target: str) -> str:
        """Returns what a link of a page is in the site."""
        if links.is_outside(target):
            return target
        path, anchor = links.resolve(self.origin(page), target)
        place = self.place(path)
        if place is None:
            return target  # MkDocs says that it does not exist
        return posixpath.relpath(place, posixpath.dirname(page) or ".") + anchor


site: Site


def on_config(config: MkDocsConfig) -> None:
    global site
    site = Site()
    config.nav = tree.navigation(reference.NAVIGATION)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, place in site.places.items():
        files.append(File.generated(config, place, abs_src_path=str(tree.ROOT / path)))
    for place, text in site.made.items():
        files.append(File.generated(config, place, content=text))
    for path, place in site.shown.items():
        if sources.is_picture(path):
            file = File.generated(config, place, abs_src_path=str(tree.ROOT / path))
        else:
            file = File.generated(config, place, content=sources.page(path, site.place))
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    place = page.file.src_uri
    text = COMMENT.sub("", markdown)
    if not place.startswith("source/"):
        text = links.rewrite(text, lambda target: site.link(place, target))
    title = FIRST_HEADING.search(text)
    if title:
        page.meta.setdefault("title", title[1].replace("`", ""))
    site.markdown[place] = timelines.in_words(text)
    return links.fit_lists(timelines.drawn(text))


def on_page_content(html: str, page: Page, **_: Any) -> str:
    if "\n::: " in f"\n{page.markdown}":
        site.markdown[page.file.src_uri] = plain.of_html(html)
    return html


def on_post_page(output: str, **_: Any) -> str:
    """Names the dialog of the search, which the theme does not."""
    return output.replace('role="dialog">', 'role="dialog" aria-label="Search">', 1)


def on_post_build(config: MkDocsConfig) -> None:
    plain.write(Path(config.site_dir), config, site.markdown)
