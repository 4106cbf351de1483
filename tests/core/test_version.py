"""The product has a version of its own, which staff see and merchants do not."""

import json
import tomllib

import pytest

from core.version import VERSION
from embedded.environment import PROJECT
from tests.commands import run
from tests.factories import make_merchant
from tests.live import LiveServer
from tests.operators.back_office import make_staff, signed_in


def test_the_project_file_has_the_version() -> None:
    assert tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"] == VERSION


def test_a_command_prints_both_versions() -> None:
    assert run("show_version") == {"version": VERSION, "api_version": "1.1.0"}


@pytest.mark.django_db(transaction=True)
def test_the_log_names_the_version_and_no_response_of_the_api_does(live: LiveServer) -> None:
    started = [json.loads(line) for line in live.log.splitlines() if "process_started" in line]
    merchant = make_merchant()
    merchant.http = live.http

    assert [line["version"] for line in started] == [VERSION]
    for path in ("/ping", "/openapi.json"):
        answer = merchant.get(path)
        assert answer.status_code == 200
        assert VERSION not in f"{answer.headers}{answer.content!r}"


@pytest.mark.django_db
def test_the_first_page_of_the_back_office_names_the_version() -> None:
    page = signed_in(make_staff(superuser=True)).get("/admin/")

    assert f"Version {VERSION}</p>" in page.content.decode()
