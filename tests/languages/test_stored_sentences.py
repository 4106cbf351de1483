"""Sentences that are stored in English are translated where people read them."""

import re

import pytest
from django.utils import translation

from catalogue.number_columns import DOUBTS
from core.texts import message_of, translate_stored
from operators.imports.pages import PROBLEMS
from operators.warnings.raising import watches

GROUPS = {
    "problems of files": PROBLEMS,
    "doubts": DOUBTS,
    **{kind: watch.sentences for kind, watch in watches().items()},
}
KNOWN = "Case %(case)s: %(state)s"  # any message of the catalogue
LINE = "line %(line)s: %(problem)s"


@pytest.mark.parametrize("group", GROUPS)
def test_each_sentence_is_of_its_own_message(group: str) -> None:
    for message in GROUPS[group]:
        sentence = re.sub(r"%\((\w+)\)s", r"\1", message)
        assert message_of(sentence, *GROUPS[group]) == message


def test_a_sentence_is_translated_with_its_values() -> None:
    with translation.override("de"):
        assert translate_stored("Case 4: Open", KNOWN) == "Fall 4: Open"
        assert translate_stored("line 3: Case 4: Open", KNOWN, LINE).endswith(" 3: Fall 4: Open")
        assert translate_stored("50 % (a+b) of them", KNOWN) == "50 % (a+b) of them"
    assert translate_stored("Case 4: Open", KNOWN) == "Case 4: Open"
