"""The source in an answer: both readers of the page, which share no code, on the same texts and on generated ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.engine.generators.blocks import read_answer
from gpusolver.replay import extract

RUN = "def run(x):\n    return x\n"


def both(text: str) -> tuple[str, str]:
    """What both make of a text, which must be the same."""
    status, source = read_answer(text)
    found = extract.source(text)
    assert found == (source if status == "code" else None)
    assert bool(list(extract.blocks(text))) == (status != "no_code")
    return status, source


def test_b122_two_blocks_with_prose_between_are_two_blocks() -> None:
    """Never glued: the last that defines run is the answer."""
    text = (
        f"First:\n```python\nimport os\n{RUN}```\nBetter, since it does more:\n```python\nimport torch\n{RUN}```\nDone."
    )
    assert both(text) == ("code", f"import torch\n{RUN}")


def test_b122_a_block_of_shell_after_the_answer_is_not_the_answer() -> None:
    assert both(f"```python\n{RUN}```\nRun it:\n```bash\npython kernel.py\n```\n") == ("code", RUN)


def test_b122_a_sketch_without_run_after_the_answer_is_not_the_answer() -> None:
    assert both(f"```py\n{RUN}```\nThe idea:\n```\nfor tile in tiles: ...\n```\n") == ("code", RUN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot improve this kernel.",
        RUN,
        "`def run(x): return x`",
        f"```json\n{RUN}```",
        f"    ```\n{RUN}    ```",
    ],
)
def test_b125_without_a_block_of_python_there_is_no_code(text: str) -> None:
    """Four spaces are a quotation; a whole file without a fence may be prose as well."""
    assert both(text) == ("no_code", "")


def test_b124_a_block_that_nothing_closes_is_none() -> None:
    assert both("```python\n" + "x = 1\n" * 40) == ("no_code", "")
    assert both(f"```python\n{RUN}```\n```python\ndef run(y):\n") == ("code", RUN)


def test_b127_wrong_names_are_listed() -> None:
    assert both("```python\nclass Model:\n    pass\ndef kernel(x): ...\n```") == ("wrong_names", "Model, kernel")
    assert both("```python\nclass A:\n    def run(self): ...\n```") == ("wrong_names", "A")


def test_fences_that_hold_fences() -> None:
    """Four backticks hold three, tildes hold backticks, and a closing fence has no language."""
    held = f'"""\n```\nnot the end\n```\n"""\n{RUN}'
    assert both(f"````python\n{held}````") == ("code", held)
    assert both(f"~~~\n{held}~~~") == ("code", held)
    assert both(f"```python\n```python\n{RUN}```") == ("code", f"```python\n{RUN}")


def test_line_ends_of_windows() -> None:
    assert both(f"```python\n{RUN}```".replace("\n", "\r\n")) == ("code", RUN)


LINES = st.sampled_from(
    ["```", "````", "~~~", "~~~~~", "```python", "``` Python x", "```cuda", "~~~ `py`", "```a`b", "   ```", "    ```", "def run(",
     "def run(x): ...", " def run(", "x\ty", "\r", "```\t", "~~~ ", "prose", "", "``", "```\u00a0"]
)  # fmt: skip


@given(st.lists(LINES | st.text(max_size=8), max_size=14), st.sampled_from(["\n", "\r\n"]))
def test_both_readers_agree(lines: list[str], end: str) -> None:
    both(end.join(lines))
