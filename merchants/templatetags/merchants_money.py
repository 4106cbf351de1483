"""Writes amounts in templates without rounding, as the reader's language has them."""

from decimal import Decimal

from django import template

from core.formats import local_amount

register = template.Library()


@register.filter
def money(amount: Decimal | None) -> str:
    """`9.99`, `-0.0725` or `12,500.00`; an empty string for None."""
    return "" if amount is None else local_amount(amount)
