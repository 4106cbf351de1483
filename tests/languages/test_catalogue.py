"""Each text of both sites and of the emails is in the catalogue, and has a translation."""

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from embedded.environment import PROJECT
from tests.languages.collect import catalogue_files, compiled, texts

TEMPLATES = PROJECT / "templates"
# The documentation stays in English (docs/decisions/0105-languages.md).
ENGLISH = re.compile(r"merchants/(docs\w*|api_reference\w*|snippet)\.html")
# Pages of staff, which are in English until their texts are marked. The list only shrinks.
UNMARKED = [
    "admin/account_hub",
    "admin/account_price_rows",
    "admin/account_prices",
    "admin/actions_of_person",
    "admin/ask_link",
    "admin/audit_trail",
    "admin/backup_codes",
    "admin/base",
    "admin/capped_pagination",
    "admin/case_messages",
    "admin/change_prices",
    "admin/confirm",
    "admin/desk_glance",
    "admin/desk_moves",
    "admin/desk_next",
    "admin/desk_numbers",
    "admin/desk_report",
    "admin/desk_strip",
    "admin/entries",
    "admin/error",
    "admin/how_to_find_a_code",
    "admin/import_counts",
    "admin/import_now",
    "admin/import_problems",
    "admin/import_upload",
    "admin/index",
    "admin/login",
    "admin/margin_cells",
    "admin/margins",
    "admin/open_link",
    "admin/passkeys",
    "admin/recall",
    "admin/reconcile_now",
    "admin/sales_cards",
    "admin/sales_glance",
    "admin/search",
    "admin/search_results",
    "admin/secret",
    "admin/stock_glance",
    "admin/submit_line",
    "admin/system",
    "admin/system_now",
    "admin/timeline",
    "admin/two_factor",
    "admin/two_factor_enrol",
    "admin/what_a_booking_limit_is",
    "admin/what_a_finding_is",
    "admin/what_a_lost_purchase_is",
    "admin/what_a_member_is",
    "admin/what_a_price_list_is",
    "admin/what_a_reference_is",
    "admin/what_a_request_is",
    "admin/what_a_route_is",
    "admin/what_a_shelf_is",
    "admin/what_an_announcement_is",
    "admin/what_an_idempotency_record_is",
    "admin/what_is_for_sale",
    "registration/logged_out",
    "unfold/helpers/account_links",
    "unfold/helpers/change_list_filter_actions",
    "unfold/helpers/command",
    "unfold/helpers/empty_results",
    "unfold/helpers/header_title",
    "unfold/helpers/userlinks",
    "unfold/layouts/skeleton",
]
# Names and formats, which are the same in each language.
NAMES = re.compile(r"Voucher &(amp;)? top-up|CSV|XLSX|JSON|PDF|UTC|&\w+;|&#\d+;")
TRANSLATED = re.compile(
    r"{%-?\s*(comment|verbatim).*?{%\s*end\1\s*%}"
    r"|{%\s*blocktranslate.*?{%\s*endblocktranslate\s*%}"
    r"|<(script|style|code)\b.*?</\2>",
    re.DOTALL,
)
DJANGO = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}", re.DOTALL)
SPOKEN = re.compile(r'\b(?:aria-label|title|placeholder|alt)="([^"]*)"')
TAG = re.compile(r"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""", re.DOTALL)
DEFAULT = re.compile(r"""\|default(?:_if_none)?:["'][^"']*[A-Za-z]""")


def untranslated(text: str) -> list[str]:
    """What people read or hear of a template, outside the tags that translate."""
    bare = DJANGO.sub("", TRANSLATED.sub("", text))
    parts = [*SPOKEN.findall(bare), *TAG.sub("\n", bare).splitlines()]
    words = [part.strip() for part in parts if re.search("[A-Za-z]", NAMES.sub("", part))]
    return words + DEFAULT.findall(text)


def templates() -> list[Path]:
    return [
        path
        for path in sorted(TEMPLATES.rglob("*.*"))
        if not ENGLISH.fullmatch(str(path.relative_to(TEMPLATES)))
    ]


@pytest.mark.parametrize("path", templates(), ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_a_template_has_no_text_without_a_translation(path: Path) -> None:
    name = str(path.relative_to(TEMPLATES)).removesuffix(".html")
    assert bool(untranslated(path.read_text())) == (name in UNMARKED)


@pytest.mark.parametrize(
    "text",
    [
        "<p>Save</p>",
        '<p aria-label="Save"></p>',
        '{{ name|default:"nobody" }}',
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
    ],
)
def test_a_translated_text_is_not_found(text: str) -> None:
    assert not untranslated(text)


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
