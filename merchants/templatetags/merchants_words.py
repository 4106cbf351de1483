"""Lets the long words of the API break in a narrow column."""

from django import template
from django.utils.html import conditional_escape, format_html_join
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def breakable(word: str) -> SafeString:
    """The word, which may break after each underscore."""
    *before, last = word.split("_")
    return format_html_join("", "{}_<wbr>", ((part,) for part in before)) + conditional_escape(last)
