"""Writes amounts in templates as the API does, without rounding, but with commas."""

from decimal import Decimal

from django import template

from core.json_output import money_text

register = template.Library()


@register.filter
def money(amount: Decimal | None) -> str:
    """`9.99`, `-0.0725` or `12,500.00`; an empty string for None."""
    return "" if amount is None else f"{Decimal(money_text(amount)):,}"
