"""Shows the words of the API: long ones may break in a narrow column, backquoted ones are code."""

import re

from django import template
from django.utils.html import conditional_escape, format_html_join
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

PARTS = re.compile(r"(?<=[_./@])(?=\w)")
CODE = re.compile("`([^`]+)`")


@register.filter
def breakable(text: str) -> SafeString:
    """The text, in which words may break after an underscore, a full stop, a slash or an @."""
    first, *others = PARTS.split(text)
    return format_html_join("", "{}", [(first,)]) + format_html_join(
        "", "<wbr>{}", ((part,) for part in others)
    )


@register.filter
def coded(text: str) -> SafeString:
    """The text, with backquoted words as code."""
    return mark_safe(CODE.sub(r"<code>\1</code>", conditional_escape(text)))  # noqa: S308  # escaped
