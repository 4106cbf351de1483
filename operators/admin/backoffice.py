"""The declarations of the pages of the back office: menu entries of Django's own models."""

from django.contrib.auth.models import Group, User

from core.backoffice.declarations import BackOffice, MenuEntry, Section

BACK_OFFICE = BackOffice(
    menu=[
        MenuEntry(Section.SYSTEM, "Staff", User, "badge"),
        MenuEntry(Section.SYSTEM, "Groups", Group, "groups"),
    ],
)
