"""Which name was probably meant. tests/node/server_names.test.ts has these cases, too."""

from __future__ import annotations

import pytest

from segue.names import nearest, unknown_names

KNOWN = ["color", "max_results", "to", "n"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("colour", "color"),
        ("Color", "color"),
        ("maxResults", "max_results"),
        ("max-result", "max_results"),
        ("too", "to"),
        ("N", "n"),
        ("m", None),
        ("cooler", "color"),
        ("coolr", "color"),
        ("ot", None),  # one of two characters differs
        ("clooer", "color"),
        ("size", None),
        ("", None),
        ("c" * 1000, None),
    ],
)
def test_the_nearest_name(name: str, meant: str | None) -> None:
    assert nearest(name, KNOWN) == meant


def test_the_text_has_a_maximum_length() -> None:
    names = [str(number) * 1000 for number in range(12)]
    text = unknown_names(names, ["color"])
    assert text.count("unknown argument") == 8
    assert text.endswith('and 4 more; the arguments are "color"')
    assert len(text) < 1000
    assert unknown_names(['a"\n'], []) == (
        'unknown argument "a\\"\\n"; the tool takes no arguments'
    )
