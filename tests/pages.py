"""How tests read HTML pages, and measure them in a browser."""

import html
import json
import shutil
import subprocess
from html.parser import HTMLParser

from tests.conftest import absent

WIDTHS = (1200, 400)
VOID = {"meta", "br", "path", "line", "rect", "circle"}


class Page(HTMLParser):
    """Elements by name, that everything is closed, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: dict[str, list[dict[str, str | None]]] = {}
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.setdefault(tag, []).append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.setdefault(tag, []).append(dict(attrs))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


MEASURE = """<script>
const seen = (rect) => rect.width > 0 && rect.left < innerWidth && rect.right > 0;
const content = (cell) => { const r = document.createRange(); r.selectNodeContents(cell);
  return [...r.getClientRects()].filter(seen); };
const rows = [...document.querySelectorAll("tr")].filter((row) => row.offsetHeight);
parent.document.body.dataset["at" + innerWidth] = JSON.stringify({
  labels: [...document.querySelectorAll("circle")].map((mark) => mark.getAttribute("aria-label")),
  width: document.scrollingElement.scrollWidth,
  beyond: [...document.querySelectorAll("main *")].filter(
    (e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.tagName),
  scrolled: [...document.querySelectorAll("figure, table, div, section")].filter(
    (e) => e.scrollWidth > e.clientWidth).map((e) => e.tagName),
  letters: [...document.querySelectorAll("svg text")].map((e) => e.getBoundingClientRect().height),
  covered: [...document.querySelectorAll("svg")].flatMap((svg) => {
    const texts = [...svg.querySelectorAll("text")].map((e) => [e, e.getBoundingClientRect()]);
    return texts.flatMap(([e, a], k) => texts.slice(k + 1).filter(([, b]) =>
      Math.min(a.right, b.right) > Math.max(a.left, b.left) &&
      Math.min(a.bottom, b.bottom) > Math.max(a.top, b.top) + 3
    ).map(([f]) => [e.textContent, f.textContent])); }),
  empty: rows.map((row) => {
    const lines = [...row.children].flatMap(content);
    return row.offsetHeight - (Math.max(...lines.map((l) => l.bottom)) -
      Math.min(...lines.map((l) => l.top))); }) });
</script></body>"""


def layouts(file, folder):
    """What a browser measures of a page, in windows of each width in pixels."""
    browser = shutil.which("chromium")
    if browser is None:
        absent("chromium", "no command `chromium`: install the Debian package chromium")
    page = html.escape(file.read_text(encoding="utf-8").replace("</body>", MEASURE))
    screens = folder / "screens.html"  # a browser's own window cannot be that narrow
    frames = (f'<iframe width="{w}" height="900" srcdoc="{page}"></iframe>' for w in WIDTHS)
    screens.write_text(f"<!doctype html><body>{''.join(frames)}", encoding="utf-8")
    quiet = ("--disable-gpu", "--disable-background-networking", "--no-first-run", "--no-sandbox")
    profile = f"--user-data-dir={folder / 'profile'}"
    dom = subprocess.run(
        [browser, "--headless", *quiet, profile, "--dump-dom", screens.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    (body,) = Page(dom).found["body"]
    return [json.loads(body[f"data-at{width}"] or "") | {"window": width} for width in WIDTHS]


def check_layout(layout):
    """A page is as wide as its window, its texts are legible, and those of charts lie apart."""
    assert all(layout["labels"]), "the script ran to its end"
    assert layout["width"] <= layout["window"]
    assert layout["beyond"] == [], "nothing is hidden at the right"
    assert layout["scrolled"] == []
    assert min(layout["letters"]) > 10, "pixels"
    assert layout["covered"] == [], f"texts of a chart overlap: {layout['covered']}"
    assert max(layout["empty"]) < 30, "a row is as high as what can be seen of it"
