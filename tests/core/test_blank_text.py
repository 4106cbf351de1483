"""Text that shows nothing is blank, whatever its characters are."""

import pytest

from core.inputs import is_blank


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\t\r\n",
        "\u00a0",  # no-break space
        "\u2003\u3000",  # em space, ideographic space
        "\u200b",  # zero width space
        "\ufeff",  # zero width no-break space
        "\u2060\u200d \u00ad",  # word joiner, zero width joiner, soft hyphen
        "\u202e",  # right-to-left override
        "\u3164\u115f\u1160\uffa0",  # Hangul fillers
        "\u2800",  # Braille blank
        "\ufe0f\U000e0100",  # variation selectors
        "\U000e0041",  # tag
        "\x00\x1b\x7f\x9f",
    ],
    ids=ascii,
)
def test_text_that_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "0",
        "-",
        "\u200bab",
        " . ",
        "\u00e9",
        "e\u0301",
        "\u0301",
        "中",
        "\u3164\ud55c",
        "😀",
        "\U0010ffff",
    ],
    ids=ascii,
)
def test_text_that_shows_something_is_not_blank(text: str) -> None:
    assert not is_blank(text)
