"""Texts as lines of originals: whatever lines there are, they come back, and none of the originals' stands in the list."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.engine.withheld_texts import SHORTEST, Line, Withheld, described, made_again
from gpusolver.events.errors import BadInput

ONE, OTHER = "the first long line of the original", "the second long line of the original"
ORIGINAL = f"import torch\n{ONE}\n    {OTHER}\n\nimport torch\n".encode()
LINES = st.sampled_from(
    [
        ONE,
        f"    {OTHER}",
        OTHER,
        "import torch",
        "",
        "y = 2",
        f"\t{ONE}\r",
        f"x = 1; {ONE}; {OTHER}; {ONE}",
        "\u00e9\u2028",
    ]
)


def name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def listed(*texts: bytes) -> Withheld:
    originals = {name(ORIGINAL): "theirs"}
    told = described(originals, {name(text): text for text in (*texts, ORIGINAL)})
    return Withheld(head="", originals=originals, texts=told)


@given(st.lists(st.lists(LINES), max_size=5))
def test_every_text_comes_back_and_no_long_line_is_told(made: list[list[str]]) -> None:
    texts = ["\n".join(lines).encode() for lines in made]
    said = msgspec.json.encode(listed(*texts))
    assert ONE.encode() not in said and OTHER.encode() not in said
    again = made_again(msgspec.json.decode(said, type=Withheld), {name(ORIGINAL): ORIGINAL})
    assert {name(content): content for content in (*texts, ORIGINAL)} == again


def test_a_text_is_runs_of_lines_where_it_can_be() -> None:
    """By hand: lines 0 to 2 of the original, one of its own, and a line that holds two of the original's."""
    text = f"import torch\n{ONE}\n    {OTHER}\ny = 2\n# {ONE} and {OTHER}".encode()
    (parts,) = listed(text).texts.values()
    first = name(ORIGINAL)
    assert parts == ((first, 0, 3), "y = 2", Line(("# ", (first, 1), " and ", (first, 2))))


@pytest.mark.parametrize(
    "parts", [(), ("more",), (("nobody", 0, 3),), ((name(ORIGINAL), -2, 9),), (Line((("nobody", 0),)),)]
)
def test_parts_that_do_not_give_the_text_are_refused(parts: tuple[object, ...]) -> None:
    told = Withheld(head="", originals={name(ORIGINAL): "theirs"}, texts={"0" * 64: parts})  # type: ignore[dict-item]
    with pytest.raises(BadInput, match="expected its digest"):
        made_again(told, {name(ORIGINAL): ORIGINAL})


def test_shorter_lines_are_anybodys() -> None:
    assert len("import torch") < SHORTEST <= len(ONE)


def test_a_text_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(BadInput, match="expected UTF-8"):
        listed(b"\xff\n" + ORIGINAL)
