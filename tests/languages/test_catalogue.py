"""Each text of both sites and of the emails is in the catalogue, and has a translation."""

import ast
import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from embedded.environment import PROJECT
from tests.languages.collect import (
    APPS,
    COUNTRIES,
    catalogue_files,
    compiled,
    countries,
    texts,
)

TEMPLATES = PROJECT / "templates"
# Names and formats, which are the same in each language.
NAMES = re.compile(r"Voucher &(amp;)? top-up|HTTP|CSV|XLSX|JSON|PDF|UTC|&\w+;|&#\d+;")
TRANSLATED = re.compile(
    r"{%-?\s*(comment|verbatim).*?{%\s*end\1\s*%}"
    r"|{%\s*blocktranslate.*?{%\s*endblocktranslate\s*%}"
    r"|<(script|style|code|pre)\b.*?</\2>"
    r'|<span class="[^"]*\bmaterial-symbols-outlined\b[^>]*>\w+</span>',  # the name of an icon
    re.DOTALL,
)
DJANGO = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}", re.DOTALL)
SPOKEN = re.compile(r'\b(?:aria-label|title|placeholder|alt)="([^"]*)"')
TAG = re.compile(r"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""", re.DOTALL)
# Texts inside Django's tags: of filters, and for included templates.
INSIDE = re.compile(
    r"""\|default(?:_if_none)?:["'][^"']*[A-Za-z]|\|yesno:["'][A-Z]"""
    r"""|{%\s*include [^%]*\b(?:text|title|message)=["'][^"']*[A-Za-z]"""
)


def untranslated(text: str) -> list[str]:
    """What people read or hear of a template, outside the tags that translate."""
    bare = DJANGO.sub("", TRANSLATED.sub("", text))
    parts = [*SPOKEN.findall(bare), *TAG.sub("\n", bare).splitlines()]
    words = [part.strip() for part in parts if re.search("[A-Za-z]", NAMES.sub("", part))]
    return words + INSIDE.findall(text)


def templates() -> list[Path]:
    return sorted(TEMPLATES.rglob("*.*"))


def test_a_template_has_no_text_without_a_translation() -> None:
    read = {
        str(path.relative_to(TEMPLATES)): untranslated(path.read_text()) for path in templates()
    }
    assert {name: texts for name, texts in read.items() if texts} == {}


@pytest.mark.parametrize(
    "text",
    [
        "<p>Save</p>",
        '<p aria-label="Save"></p>',
        '{{ name|default:"nobody" }}',
        "{{ name|yesno:'Yes,No' }}",
        '{% include "label.html" with text="off" type="danger" %}',
        "{% if one %}Save{% endif %}",
        "{% translate 'Save' %} it",
    ],
)
def test_a_text_without_a_translation_is_found(text: str) -> None:
    assert untranslated(text)


@pytest.mark.parametrize(
    "text",
    [
        "<p class='x'>{% translate 'Save' %}</p>",
        "{% blocktranslate %}Save <b>it</b>{% endblocktranslate %}",
        "<code>product_id</code> · {{ name }}",
        '{{ name|default:_("nobody") }}',
        '{% include "label.html" with text=_("off") type="danger" %}',
        '<span class="material-symbols-outlined" aria-hidden="true">search</span>',
    ],
)
def test_a_translated_text_is_not_found(text: str) -> None:
    assert not untranslated(text)


def test_no_translated_text_is_a_key() -> None:
    """A key such as `data[_("note")]` is another one in each language."""
    found = [
        f"{path}:{node.lineno}"
        for app in APPS
        for path in sorted((PROJECT / app).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Subscript) and is_translation(node.slice)
    ]
    assert found == []


def is_translation(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"_", "gettext", "lazy"}
    )


@pytest.mark.parametrize("path", catalogue_files(), ids=lambda path: path.parts[-3])
def test_each_text_has_a_translation(path: Path) -> None:
    with path.open("rb") as file:
        catalogue = read_po(file, locale=path.parts[-3])
    missing = {
        message
        for _source, (message, context) in texts()
        if (known := catalogue.get(message[0] if isinstance(message, tuple) else message, context))
        is None
        or (isinstance(message, tuple) and not isinstance(known.string, tuple))
    }
    assert not missing, "run `make texts`, then translate what is new"
    for message in catalogue:
        if message.id:
            assert not message.fuzzy
            forms = message.string if isinstance(message.string, tuple) else (message.string,)
            sources = message.id if isinstance(message.id, tuple) else (message.id,)
            assert len(forms) == (catalogue.num_plurals if len(sources) > 1 else 1)
            for source, form in zip(sources, forms, strict=True):
                assert form, f"no translation of {source!r}"
                assert placeholders(str(form)) == placeholders(str(source)), source


def placeholders(text: str) -> set[str]:
    """The values and the HTML tags of a text."""
    return set(re.findall(r"%\(\w+\)s|</?\w+", text))


@pytest.mark.parametrize("path", catalogue_files(), ids=lambda path: path.parts[-3])
def test_the_compiled_catalogue_is_up_to_date(path: Path) -> None:
    assert path.with_suffix(".mo").read_bytes() == compiled(path.read_bytes(), path.parts[-3])


def test_the_names_of_countries_are_those_of_the_cldr() -> None:
    assert COUNTRIES.read_text() == countries(), "run: make texts"
