"""Sentences that are stored in English are translated where people read them."""

import re

from django.utils import translation

from catalogue.imports.code_file import WRONG_LINES
from core.backoffice.registry import watches
from core.files.tables import WRONG_LINE, WRONG_TABLES
from core.texts import message_of, translate_stored
from operators.imports.catalogue_table import WRONG_CATALOGUE_TABLES, WRONG_CELL
from operators.imports.pages import DOUBTS_OF_FILES, PROBLEMS

GROUPS = {
    "problems of files": PROBLEMS,
    "doubts": DOUBTS_OF_FILES,
    **{kind: watch.sentences for kind, watch in watches().items()},
}
KNOWN = "Case %(case)s: %(state)s"  # any message of the catalogue
LINE = "line %(line)s: %(problem)s"


def test_each_sentence_is_of_its_own_message() -> None:
    for messages in GROUPS.values():
        for message in messages:
            assert message_of(example(message), *messages) == message


def test_a_problem_of_a_line_is_translated_inside_it() -> None:
    for message in (WRONG_LINE, WRONG_CELL):
        for problem in WRONG_LINES + WRONG_TABLES + WRONG_CATALOGUE_TABLES[1:]:
            sentence = message % {"line": 3, "problem": example(problem)}
            assert message_of(sentence, *PROBLEMS) == message


def example(message: str) -> str:
    """A sentence made of the message."""
    return re.sub(r"%\((\w+)\)s", lambda name: "7" if name[1] == "line" else name[1], message)


def test_a_sentence_is_translated_with_its_values() -> None:
    with translation.override("de"):
        assert translate_stored("Case 4: Open", KNOWN) == "Fall 4: Open"
        assert translate_stored("line 3: Case 4: Open", LINE, KNOWN).endswith(" 3: Fall 4: Open")
        assert translate_stored("50 % (a+b) of them", KNOWN) == "50 % (a+b) of them"
        assert translate_stored(f"Case {'4' * 1000}: Open", KNOWN).startswith("Case 4")
    assert translate_stored("Case 4: Open", KNOWN) == "Case 4: Open"
