"""The filter for texts inside a sentence."""

from django import template

from core.texts import inside_sentence

register = template.Library()
register.filter(inside_sentence)
