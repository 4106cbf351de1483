"""No role is shown a link to a page that it may not open."""

import re

import pytest
from django.contrib.auth.models import Group

from core.backoffice.staff_roles import StaffRole
from tests.operators.back_office import World, list_url, make_staff, shown_models, signed_in, url

LINK = re.compile(r'href="(/admin/[^"#]*)"')


@pytest.mark.parametrize("role", StaffRole)
def test_every_link_of_a_role_opens(role: StaffRole, db: None) -> None:
    World().grow(1)
    staff = make_staff()
    staff.groups.add(Group.objects.get(name=role))
    browser = signed_in(staff)
    pages = [list_url(model) for model in shown_models()]
    pages += [url(row) for model in shown_models() if (row := model._default_manager.first())]
    links = {
        (page, link.replace("&amp;", "&"))
        for page in pages
        if (answer := browser.get(page)).status_code == 200
        for link in LINK.findall(answer.content.decode())
        if "logout" not in link
    }

    opened = {link: browser.get(link).status_code for _, link in links}
    dead = {(page, link) for page, link in links if opened[link] == 403}
    assert dead == set()
    assert len(opened) > 5
