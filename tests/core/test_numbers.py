"""Amounts and counts at a shell are read like those in files. Forms read a comma, too."""

from argparse import ArgumentTypeError
from collections.abc import Iterator
from decimal import Decimal
from importlib import import_module
from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.test import RequestFactory
from django.utils import translation

from accounts.form_fields import MoneyField, NumberField, PositiveMoneyField, WholeNumberField
from core.command_line import amount, whole_number
from core.inputs import InputProblem
from core.numbers import clear_text, read_clear_number
from merchants.models import Role
from tests.commands import refusal
from tests.factories import make_account
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_staff

# What Python takes for a number, or a person for two, and what is said of it.
WRONG = {
    "1.000": "1.000 may mean 1 or 1000. Write one of these",
    "1.125": "1.125 may mean 1.1250 or 1125. Write one of these",
    " -12.345 ": "-12.345 may mean -12.3450 or -12345. Write one of these",
    "1,000": "1,000 may mean 1.000 or 1000. Write a point before the decimals",
    "1,5": "1,5 is not a plain number. Write 1.5: only digits",
    "1500,500": "1500,500 is not a plain number. Write 1500.500: only digits",
    "0,125": "0,125 is not a plain number. Write 0.125: only digits",
    "1,000,000": "1,000,000 is not a plain number. Write 1000000: only digits",
    "1.500,00 EUR": "1.500,00 EUR is not a plain number. Write 1500.00: only digits",
    "$15": "$15 is not a plain number. Write 15: only digits",
    "1.250,50": "1.250,50 is not a plain number. Write 1250.50: only digits",
    "-1,234,567.8": "-1,234,567.8 is not a plain number. Write -1234567.8: only digits",
    "1_000": "1_000 is not a plain number",
    "\uff11\uff12": "\uff11\uff12 is not a plain number",
    "1e3": "1e3 is not a plain number",
    "1.23457E15": "1.23457E15 is not a plain number",
    "+1": "+1 is not a plain number",
    "1 000": "1 000 is not a plain number. Write 1000: only digits",
    "1\u00a0000": r"1\xa0000 is not a plain number. Write 1000: only digits",
    "1'234.5": "1'234.5 is not a plain number. Write 1234.5: only digits",
    "0x10": "0x10 is not a plain number",
    "NaN": "NaN is not a plain number",
    "Infinity": "Infinity is not a plain number",
    "1.": "1. is not a plain number",
    "10 EUR": "10 EUR is not a plain number. Write 10: only digits",
    "9" * 41: "This number has more than 40 digits",
}
RIGHT = {
    "1": "1",
    "1.50": "1.5",
    ".5": "0.5",
    "-2.5": "-2.5",
    "0.125": "0.125",
    "1234.567": "1234.567",
}


# What means one number in all languages, though not to a program.
TYPED = {
    "1,5": "1.5",
    "0,125": "0.125",
    "1500,500": "1500.5",
    "1.250,50": "1250.50",
    "-1,234,567.8": "-1234567.8",
    " 1.250,500 ": "1250.5",
    "1,000,000": "1000000",
    "1 000": "1000",
    "1\u00a0000": "1000",
    "1'234.5": "1234.5",
}


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_typed_comma_is_read_where_it_means_one_number(language: str) -> None:
    with translation.override(language):
        for text, number in TYPED.items():
            assert cleaned(MoneyField(), text) == Decimal(number), text
        for text in ("1,000", "1.000", "12,345", "-1,125"):
            assert text in cleaned(MoneyField(), text)
    with translation.override("de"):
        assert "Schreiben Sie 1,5 oder 1500" in cleaned(MoneyField(), "1.500")


def test_a_refused_number_is_shown_with_the_mark_of_the_language() -> None:
    said = {
        "abc": "Schreiben Sie nur Ziffern und das Dezimalzeichen, etwa 1234,50.",
        "1.500,00 EUR": "Schreiben Sie 1500,00: nur Ziffern und das Dezimalzeichen.",
        "1,250 EUR": "1,250 EUR ist nicht eindeutig. Schreiben Sie 1,25 oder 1250.",
    }
    for text, words in said.items():
        with translation.override("de"):
            for field in (NumberField(), MoneyField(), WholeNumberField()):
                assert words in cleaned(field, text)
    assert "such as 1234.50." in cleaned(MoneyField(), "abc")


def test_a_number_is_shown_and_sent_in_the_language_of_the_page() -> None:
    with translation.override("de"):
        for text, shown in (("1250.5", "1250,50"), ("0.125", "0,1250"), ("1000", "1000,00")):
            assert MoneyField().prepare_value(Decimal(text)) == shown
            assert cleaned(MoneyField(), shown) == Decimal(text)
            assert not MoneyField().has_changed(Decimal(text), shown)
        assert 'placeholder="1500,50"' in PositiveMoneyField().widget.render("amount", None)


@pytest.mark.parametrize("text", ["0", "-5", "-0.0001"])
def test_an_amount_above_zero_is_asked_for_in_words(text: str) -> None:
    assert cleaned(PositiveMoneyField(), text) == "Enter an amount above 0."
    assert cleaned(PositiveMoneyField(), "0.0001") == Decimal("0.0001")
    assert 'placeholder="1500.50"' in PositiveMoneyField().widget.render("amount", None)


def cleaned(field: forms.Field, text: str) -> Any:
    """The value, or the text of the error."""
    try:
        return field.clean(text)
    except forms.ValidationError as error:
        return " ".join(error.messages)


def said(read: Any, text: str) -> str:
    try:
        return f"read as {read(text)}"
    except (InputProblem, ArgumentTypeError) as problem:
        return str(problem)


def test_what_is_not_one_plain_number_is_refused_everywhere_in_words() -> None:
    fields = {"number": NumberField(), "money": MoneyField(), "whole": WholeNumberField()}
    commands = {"clear": read_clear_number, "amount": amount, "whole": whole_number}
    in_forms = {
        **{text: words for text, words in WRONG.items() if text not in TYPED},
        "1,000": "1,000 may mean 1 or 1000. Write one of these",
        "1.250 €": "1.250 € may mean 1.25 or 1250. Write one of these",
    }
    answers = [
        *(
            (text, name, words, str(cleaned(field, text)))
            for text, words in in_forms.items()
            for name, field in fields.items()
        ),
        *(
            (text, name, words, said(read, text))
            for text, words in WRONG.items()
            for name, read in commands.items()
        ),
    ]
    assert [one for one in answers if one[2] not in one[3]] == []


def test_plain_numbers_are_read() -> None:
    for text, number in RIGHT.items():
        assert cleaned(NumberField(), text) == amount(text) == Decimal(number)
    assert cleaned(WholeNumberField(), " 12 ") == whole_number("12.0") == 12
    assert cleaned(WholeNumberField(), "12.5") == "Enter a whole number."
    with pytest.raises(ArgumentTypeError, match=r"12\.5 is not whole"):
        whole_number("12.5")


def test_a_number_that_is_shown_in_a_field_can_be_sent_again() -> None:
    for text in ("1", "1.5", "1.125", "1000", "0.0005", "-12.345"):
        number = Decimal(text)
        shown = MoneyField().prepare_value(number)
        assert cleaned(MoneyField(), shown) == cleaned(NumberField(), clear_text(number)) == number


def test_too_large_a_number_is_refused_in_words() -> None:
    assert "no more than 20 digits" in cleaned(MoneyField(), "9" * 21)
    assert "before the decimal point" in cleaned(MoneyField(), "9" * 18)
    assert "less than or equal to 5" in cleaned(WholeNumberField(max_value=5), "9" * 30)


def own_fields() -> Iterator[tuple[str, forms.Field]]:
    """The fields that every form of ours declares, and those of the columns that pages change, by
    the name of the form and the field."""
    import_module("config.urls")
    request = RequestFactory().get("/")
    request.user = make_staff(superuser=True)
    classes: list[type[forms.BaseForm]] = [forms.BaseForm]
    while classes:
        one = classes.pop()
        classes += one.__subclasses__()
        if not one.__module__.startswith(("django.", "unfold.", "tests.")):
            for name, field in getattr(one, "declared_fields", {}).items():
                yield f"{one.__module__}.{one.__qualname__}.{name}", field
    for model, page in admin.site._registry.items():
        for column in model._meta.get_fields():
            if name := getattr(column, "editable", False) and column.name:
                field = page.formfield_for_dbfield(column, request)  # type: ignore[arg-type]
                if field is not None:
                    yield f"{type(page).__qualname__}.{name}", field


# A program fills these in.
HIDDEN = ("before", "after", "number", "product", "variation", "move_from")


@pytest.mark.django_db
def test_every_form_reads_numbers_alike() -> None:
    numbers = {name: field for name, field in own_fields() if isinstance(field, forms.IntegerField)}
    others = [
        name
        for name, field in numbers.items()
        if not isinstance(field, NumberField | WholeNumberField)
        and not field.widget.is_hidden
        and name.rpartition(".")[2] not in HIDDEN
    ]
    assert others == []
    assert len(numbers) > 20
    with_commas = [field for field in numbers.values() if isinstance(field, NumberField)]
    assert {field.widget.input_type for field in with_commas} <= {"text", "hidden"}


@pytest.mark.django_db
def test_a_deposit_of_an_unclear_amount_is_refused() -> None:
    account = make_account(balance="0")
    for text, words in WRONG.items():
        assert words.strip() in refusal("deposit", account.pk, "--reference=r", "--", text)


@pytest.mark.django_db
def test_the_page_says_what_a_number_may_mean() -> None:
    browser = browser_of(make_member(role=Role.OWNER))
    sent = {"amount": "1.000", "reference": "transfer 1"}
    page = browser.post("/merchant/wallet/transfers/new/", sent).content.decode()
    assert "1.000 may mean 1 or 1000. Write one of these." in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("currency", "text", "words"),
    [
        ("USD", "0.001", "at most 2 decimals. Enter the amount that you sent, such as 1500.50."),
        ("KWD", "0.0001", "at most 3 decimals"),
        ("JPY", "0.5", "at most 0 decimals. Enter the amount that you sent, such as 1500."),
        ("USD", "99999999999999", "must be less than 10,000,000,000 USD. Check the amount."),
        ("IDR", "9999999999", "The transfer is announced"),
        ("USD", "0.010", "The transfer is announced"),
        ("KWD", "12.3450", "The transfer is announced"),
    ],
)
def test_a_transfer_has_the_decimals_of_its_currency(currency: str, text: str, words: str) -> None:
    browser = browser_of(make_member(account=make_account(currency=currency), role=Role.OWNER))
    sent = {"amount": text, "reference": "transfer 1"}
    page = browser.post("/merchant/wallet/transfers/new/", sent, follow=True)
    assert words in page.content.decode()
