"""What a reader of a page sees, as lines of text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

UNSEEN = {"script", "style", "template", "svg"}
LINES = {
    *[
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "button",
        "caption",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
    ],
    "fieldset",
    *[
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "label",
        "legend",
        "li",
        "main",
    ],
    *[
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "select",
        "summary",
        "table",
        "tbody",
        "td",
        "textarea",
        "tfoot",
        "th",
    ],
    *["thead", "title", "tr", "ul"],
}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.unseen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self.unseen.append(tag)
        if tag in LINES:
            self.text.append("\n")
        given = dict(attrs)
        if not self.unseen and tag == "input" and given.get("type") != "hidden":
            said = [f"{key}={given[key]}" for key in ("type", "name", "value") if given.get(key)]
            self.text.append(f" [{' '.join(said)}{' checked' * ('checked' in given)}] ")
        if not self.unseen and tag == "a" and given.get("href"):
            self.text.append(f" <{given['href']}> ")

    def handle_endtag(self, tag: str) -> None:
        if self.unseen and tag == self.unseen[-1]:
            self.unseen.pop()
        if tag in LINES:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            self.text.append(data)


def visible(page: str) -> str:
    """The text of a page, its fields and where its links lead, one block a line."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    lines = (re.sub(r"\s+", " ", line).strip() for line in "".join(reader.text).split("\n"))
    return "\n".join(line for line in lines if line)
