"""The line conventions of kernel sources, on texts written out by hand."""

from __future__ import annotations

import pytest

from gpusolver.events.errors import BadInput
from gpusolver.problems.sources import config_of, strict_twin, with_config, with_precision

SOURCE = '"""A."""\n\nPRECISION = "ieee"\nCONFIG = {"BLOCK": 1}\n\ndef run(x):\n    CONFIG = 1\n    return x  # PRECISION = "tf32"\n'
AT_TF32 = SOURCE.replace('\nPRECISION = "ieee"\n', '\nPRECISION = "tf32"\n')


def test_precision_changes_its_line_and_nothing_else() -> None:
    assert with_precision(SOURCE, "tf32") == AT_TF32
    assert strict_twin(AT_TF32) == SOURCE
    assert strict_twin(SOURCE) == SOURCE


def test_a_configuration_is_written_with_sorted_keys_and_spaces() -> None:
    expected = SOURCE.replace('CONFIG = {"BLOCK": 1}', 'CONFIG = {"BLOCK_M": 16, "num_stages": 2, "num_warps": 8}')
    assert with_config(SOURCE, {"num_warps": 8, "num_stages": 2, "BLOCK_M": 16}) == expected
    assert config_of(expected) == {"BLOCK_M": 16, "num_stages": 2, "num_warps": 8}


def test_line_ends_are_kept() -> None:
    text = 'x = "\f\u2028"\r\nPRECISION = "tf32"\ny = 1'
    assert strict_twin(text) == 'x = "\f\u2028"\r\nPRECISION = "ieee"\ny = 1'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "none"),
        ("PRECISION = 'ieee'", "none"),
        (' PRECISION = "ieee"', "none"),
        ('PRECISION = "bf16"', "none"),
        ('PRECISION = "tf32x2"', "none"),
        ('PRECISION = "ieee"  # strict', "none"),
        ('PRECISION = "ieee"\nx = 1\nPRECISION = "tf32"', "lines 1, 3"),
    ],
)
def test_a_source_without_exactly_one_precision_line_is_refused(text: str, found: str) -> None:
    with pytest.raises(BadInput, match=f"exactly one line `PRECISION.*found {found};"):
        strict_twin(text)


def test_a_template_without_exactly_one_config_line_is_refused() -> None:
    with pytest.raises(BadInput, match=r"exactly one line `CONFIG = .*found none"):
        with_config('PRECISION = "ieee"\n    CONFIG = {}\n', {"A": 1})
    with pytest.raises(BadInput, match="found lines 1, 2"):
        config_of("CONFIG = {}\nCONFIG = {}")


@pytest.mark.parametrize("value", ["{'A': 1}", '{"A": 1.5}', '{"A": true}', "[1]", '{"A": 1} or None'])
def test_a_config_line_holds_one_json_object_of_integers(value: str) -> None:
    with pytest.raises(BadInput, match="JSON"):
        config_of(f"CONFIG = {value}")
