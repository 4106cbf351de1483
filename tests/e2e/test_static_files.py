"""With STATIC_ROOT, the files of pages have hashed names, and browsers keep them for ever."""

import os
import re
import time
from collections.abc import Iterator
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser

from tests.browsing import PASSWORD, sign_in, take_session
from tests.factories import buy_topup, make_merchant, make_operator
from tests.live import LiveServer, live_server
from tests.operators.back_office import make_staff, signed_in
from tests.quick_starts import run_quickly

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = ["/admin/login/", "/merchant/sign-in/", "/docs/", "/docs/api/"]
HASHED = re.compile(r"\.[0-9a-f]{12}\.\w+$")
FOREVER = "max-age=315360000, public, immutable"


@pytest.fixture(scope="module")
def server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A web server with collected files, as in production and `make run`."""
    collected = {"STATIC_ROOT": str(tmp_path_factory.mktemp("static"))}
    run_quickly(
        ["manage.py", "collectstatic", "--no-input", "--verbosity=0"],
        environment={**os.environ, **collected},
        check=True,
    )
    with live_server(collected, workers=1) as server:
        yield server


def files_of(server: LiveServer, page: str) -> set[str]:
    """The addresses of the page's own files."""
    answer = server.http.get(page)
    assert answer.status_code == 200
    return set(re.findall(r'(?:src|href)="(/static/[^"?#]+)', answer.content.decode()))


@pytest.mark.parametrize("page", PAGES)
def test_the_files_of_a_page_have_hashed_names_and_are_kept(server: LiveServer, page: str) -> None:
    files = files_of(server, page)
    assert files
    for file in files:
        answer = server.http.get(file)
        assert HASHED.search(file), file
        assert (answer.status_code, answer["Cache-Control"]) == (200, FOREVER), file


def test_files_that_a_style_sheet_names_are_kept_too(server: LiveServer) -> None:
    named = [
        urljoin(sheet, name)
        for page in PAGES
        for sheet in files_of(server, page)
        if sheet.endswith(".css")
        for name in re.findall(r"url\([\"']?([^\"')]+)", server.http.get(sheet).content.decode())
        if not name.startswith(("data:", "#"))
    ]
    assert named
    for file in named:
        answer = server.http.get(file)
        assert (answer.status_code, answer["Cache-Control"]) == (200, FOREVER), file


def test_files_are_sent_compressed(server: LiveServer) -> None:
    (sheet,) = (file for file in files_of(server, "/merchant/sign-in/") if file.endswith(".css"))

    answer = server.http.get(sheet, headers={"Accept-Encoding": "gzip"})

    assert answer["Content-Encoding"] == "gzip"


def test_without_static_root_names_are_plain(live: LiveServer) -> None:
    """The control, and what tests and single commands use."""
    for file in files_of(live, "/merchant/sign-in/"):
        assert not HASHED.search(file)
        assert live.http.get(file)["Cache-Control"] == "max-age=60, public"


@pytest.mark.browser
def test_pages_work_in_a_browser(server: LiveServer, chromium: Browser) -> None:
    """Every file that the pages, their styles and their scripts load exists."""
    staff = make_staff("catalogue.view_product", "orders.view_order")
    staff.set_password(PASSWORD)
    staff.save()
    page = chromium.new_page(base_url=server.base_url)
    failed: list[str] = []
    loaded: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.on(
        "response",
        lambda answer: (failed if answer.status >= 400 else loaded).append(answer.url),
    )
    page.goto("/merchant/sign-in/", wait_until="networkidle")
    page.goto("/docs/", wait_until="networkidle")
    sign_in(page, staff.username)
    for path in ("/admin/", "/admin/orders/order/", "/admin/catalogue/product/"):
        page.goto(path, wait_until="networkidle")
    assert failed == []
    assert any(name.endswith(".woff2") for name in loaded)
    assert all(HASHED.search(one) for one in loaded if "/static/" in one)


DESK = "/admin/topups/fulfilment/"
LARGEST_DESK = 300_000  # bytes as they come over the network, headers included
SLOW = 50_000  # bytes per second
# Until the buttons can be pressed. A machine that nobody shares needed 5.2 and 0.9 seconds.
FIRST_SECONDS, LATER_SECONDS = 10.0, 4.0


@pytest.mark.browser
def test_the_desk_is_small_and_usable_on_a_slow_line(server: LiveServer, chromium: Browser) -> None:
    """An operator who has never been here opens the desk at 50 KB/s, and then an order.

    The first visit loads every file; later pages find them in the browser's cache.
    """
    merchant = make_merchant()
    reference = buy_topup(merchant)
    operator = make_operator(username="slow-line")
    line = {"offline": False, "latency": 100, "downloadThroughput": SLOW, "uploadThroughput": SLOW}
    with chromium.new_context(base_url=server.base_url) as context:
        page = context.new_page()
        take_session(page, server, signed_in(operator.user))
        page.goto("/admin/")
        network = context.new_cdp_session(page)
        network.send("Network.enable")
        network.send("Network.clearBrowserCache")
        network.send("Network.emulateNetworkConditions", line)
        sizes: list[float] = []
        network.on(
            "Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"])
        )

        began = time.monotonic()
        page.goto(DESK, wait_until="commit")
        page.get_by_role("button", name="Claim next").click(trial=True)
        first = time.monotonic() - began
        page.wait_for_load_state("networkidle")
        desk = sum(sizes)

        began = time.monotonic()
        page.get_by_role("link", name=reference).click()
        page.get_by_role("button", name="Claim").first.click(trial=True)
        later = time.monotonic() - began
    assert desk < LARGEST_DESK
    assert first < FIRST_SECONDS
    assert later < LATER_SECONDS
