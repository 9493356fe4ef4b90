"""Check a built site: every link and anchor leads somewhere, and nothing comes from other hosts.

python docs/check_site.py build/site
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
NOT_LOADED = {"canonical", "search", "index", "next", "prev", "author", "license"}


class Page(HTMLParser):
    """The ids of a page, its links, and the files that a browser loads with it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids, self.links, self.loaded = set(), set(), set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        found = {key: value for key, value in attributes if value}
        self.ids.update(found[key] for key in ("id", "name") if key in found)
        for key in ("href", "src"):
            if key not in found:
                continue
            is_loaded = (tag, key) in LOADED and found.get("rel") not in NOT_LOADED
            (self.loaded if is_loaded else self.links).add(found[key])


def faults(site: Path) -> list[str]:
    """Return what is wrong, one line each."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = [
        f"{path.relative_to(site)}: loads {address}, which is on another host"
        for path, page in pages.items()
        for address in sorted(page.loaded)
        if urlsplit(address).netloc
    ]
    for path, page in pages.items():
        for address in sorted(page.links | page.loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists():
                found.append(f"{path.relative_to(site)}: {address} is not there")
            elif anchor and target in pages and anchor not in pages[target].ids:
                found.append(f"{path.relative_to(site)}: {address} has no such anchor")
    for sheet in sorted(site.rglob("*.css")):
        text = sheet.read_text("utf-8")
        if "url(http" in text or "url(//" in text or "@import" in text:
            found.append(f"{sheet.relative_to(site)}: loads something else")
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    if not (site / "index.html").exists():
        sys.exit(f"{site} is not a built site: make docs")
    problems = faults(site)
    print(*problems, sep="\n", end="\n" if problems else "")
    sys.exit(1 if problems else 0)
