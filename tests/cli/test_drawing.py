"""Pictures as SVG text."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.cli.chart import (
    TEXT_SIZE,
    Paint,
    Point,
    Rectangle,
    draw_arrow,
    draw_band,
    draw_block,
    draw_picture,
    draw_words,
    fit_text,
    measure_text,
)

SVG = "{http://www.w3.org/2000/svg}"
PAINT = Paint("#123456")


def read(text: str) -> ET.Element:
    """Read a picture as a browser does."""
    return ET.fromstring(text)


def test_a_picture_is_well_formed_whatever_its_words() -> None:
    """Marks of XML in what is said are text, in blocks, beside them and in the title."""
    said = '<a> & "b"'
    at = Rectangle(0, 0, 300, 20)
    drawn = read(
        draw_picture(300, 20, said, [draw_block(at, PAINT, said, "1 < 2"), draw_words(0, 9, said)])
    )
    assert drawn[0].text == said
    assert [each.text for each in drawn.iter(f"{SVG}text")] == [said, "1 < 2", said]
    assert drawn.get("viewBox") == "0 0 300 20"


def test_a_block_without_words_is_a_rectangle() -> None:
    """No empty text is written."""
    drawn = read(
        draw_picture(9, 9, "", [draw_block(Rectangle(1, 2, 3, 4), PAINT), draw_words(0, 0, "")])
    )
    assert [each.tag for each in drawn] == [f"{SVG}title", f"{SVG}rect"]
    assert drawn[1].get("fill") == PAINT.ground


def test_a_band_leads_from_edge_to_edge() -> None:
    """It begins at the right edge of one block and ends at the left edge of the other."""
    path = draw_band(Rectangle(0, 10, 100, 20), Rectangle(150, 50, 100, 5), "#000")
    assert 'd="M100,10 ' in path
    assert " 150,50 L150,55 " in path
    assert path.count(" 100,30 Z") == 1  # back to the lower corner that it began above


def test_an_arrow_ends_in_its_head() -> None:
    """The head's point is where it leads to, turned as the arrow is."""
    line, head = draw_arrow(Point(0, 0), Point(30.0, 30.0)).splitlines()
    assert 'd="M0,0 L30,30"' in line
    assert 'transform="translate(30,30) rotate(45)"' in head


@pytest.mark.parametrize(("text", "pixels"), [("", 0), ("ab", 2 * 0.56), ("命令", 2.0)])
def test_chinese_is_wider(text: str, pixels: float) -> None:
    """A Chinese character is a square."""
    assert measure_text(text) == pytest.approx(pixels * TEXT_SIZE)


@given(st.text(), st.floats(0, 500))
def test_fitted_words_fit(text: str, room: float) -> None:
    """What is cut fits, is a beginning of the text, and says that it was cut."""
    cut = fit_text(text, room)
    assert measure_text(cut) <= room
    assert cut == text or cut == "" or (cut.endswith("…") and text.startswith(cut[:-1]))
