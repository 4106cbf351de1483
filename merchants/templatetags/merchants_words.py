"""Lets the long words of the API break in a narrow column."""

import re

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

register = template.Library()

PARTS = re.compile(r"(?<=[_./])(?=\w)")


@register.filter
def breakable(text: str) -> SafeString:
    """The text, in which words may break after an underscore, a full stop or a slash."""
    first, *others = PARTS.split(text)
    return format_html_join("", "{}", [(first,)]) + format_html_join(
        "", "<wbr>{}", ((part,) for part in others)
    )
