"""Each import of codes is a batch, which can be held, recalled and voided as a whole."""

import re
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin import site
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from audit.models import AuditAction, AuditEntry
from catalogue.imports.take_back import take_import_back
from catalogue.models import Batch, CodeHold, Product, VoucherCode
from catalogue.stock.batches import count_codes
from catalogue.stock.holds import _change_stock as change_stock
from catalogue.stock.holds import hold_codes
from core.formats import local_day
from figures.models import DailyStock
from figures.stock_counting import count_stock
from operators.catalogue import batches
from operators.upkeep.reconcile import reconcile
from orders.remedies.recall import orders_of_batch
from tests.commands import refusal, run
from tests.concurrency.racing import (
    execute,
    in_background,
    start,
    wait_for_waiting,
    with_own_http,
)
from tests.factories import make_lost_purchase, make_merchant, make_product, own_shelf
from tests.operators.back_office import list_url, make_staff, signed_in, url

pytestmark = pytest.mark.django_db(transaction=True)

MAY = ("catalogue.view_batch", "catalogue.view_codehold", "catalogue.hold_codes")


@pytest.fixture
def product() -> Product:
    return make_product(price="1.00")


def import_batch(product: Product, folder: Path, name: str, number: int, *words: str) -> Batch:
    file = folder / f"{name}.csv"
    file.write_text("code\n" + "".join(f"{name}-{one}\n" for one in range(number)))
    return Batch.objects.get(pk=run("import_codes", product.pk, file, *words)["batch"])


def test_an_import_is_a_batch_with_what_people_say_of_it(product: Product, tmp_path: Path) -> None:
    import_batch(product, tmp_path, "other", 2)
    words = ("--supplier", "Acme", "--invoice", "47", "--unit-cost", "0.912", "--cost-currency")
    batch = import_batch(product, tmp_path, "mine", 3, *words, "EUR")
    assert (batch.supplier, batch.invoice) == ("Acme", "47")
    assert (batch.unit_cost, batch.cost_currency) == (Decimal("0.912"), "EUR")
    assert batch.imported_by.startswith("shell:")
    assert batch.number == VoucherCode.objects.filter(batch.its_codes).count() == 3
    assert count_codes(batch) == {"in-stock": 3, "sold": 0, "held": 0, "void": 0}
    assert reconcile()["ok"] is True


@pytest.mark.parametrize(
    "words",
    [
        ("--unit-cost", "1"),
        ("--cost-currency", "EUR"),
        ("--unit-cost", "-1", "--cost-currency", "EUR"),
        ("--unit-cost", "1", "--cost-currency", "euro"),
        ("--supplier", "x" * 201),
    ],
)
def test_a_cost_that_says_nothing_is_refused(
    words: tuple[str, ...], product: Product, tmp_path: Path
) -> None:
    file = tmp_path / "codes.csv"
    file.write_text("code\nA\n")
    assert refusal("import_codes", product.pk, file, *words)
    assert not VoucherCode.objects.filter(shelf__product=product).exists()


def test_the_same_file_has_the_same_digest_and_no_plain_one(
    product: Product, tmp_path: Path
) -> None:
    first = import_batch(product, tmp_path, "one", 1)
    take_import_back(batch_id=first.pk, reason="wrong shelf", held_by="test")
    again = Batch.objects.get(pk=run("import_codes", product.pk, tmp_path / "one.csv")["batch"])
    other = import_batch(product, tmp_path, "two", 1)
    assert bytes(first.file_digest) == bytes(again.file_digest) != bytes(other.file_digest)
    with connection.cursor() as cursor:
        cursor.execute("SELECT sha256(%s)", [(tmp_path / "one.csv").read_bytes()])
        assert bytes(cursor.fetchone()[0]) != bytes(first.file_digest)


def test_a_recalled_batch_is_sold_no_more(
    product: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recalled = import_batch(product, tmp_path, "bad", 4)
    good = import_batch(product, tmp_path, "good", 2)
    merchant = make_merchant(balance="10.00")
    bought = merchant.buy(product_id=product.pk, quantity=3).json()["data"]
    assert not list(orders_of_batch(good))

    held = run("hold_codes", "--batch", recalled.pk, "--reason", "supplier recalled it")

    assert held["codes_held"] == 1
    assert count_codes(recalled) == {"in-stock": 0, "sold": 3, "held": 1, "void": 0}
    rest = merchant.buy(product_id=product.pk, quantity=2).json()["data"]["codes"]
    assert [code["code"] for code in rest] == ["good-0", "good-1"]
    (order,) = orders_of_batch(recalled)
    (after,) = orders_of_batch(good)
    assert (after["codes"], after["quantity"]) == (2, 2)
    assert (order["reference"], order["account_id"], order["codes"], order["quantity"]) == (
        bought["reference"],
        merchant.account.pk,
        3,
        3,
    )
    assert "another person voids them" in refusal("void_codes", held["hold"])
    monkeypatch.setenv("SUDO_USER", "another")
    run("void_codes", held["hold"])
    assert count_codes(recalled)["void"] == 1
    assert reconcile()["ok"] is True


def hold_while_merchants_buy(product: Product, batch: Batch) -> tuple[int, list[int]]:
    """How many codes were held, and the statuses of 40 purchases meanwhile."""
    merchant = make_merchant(balance="100.00")

    def buy(number: int) -> int:
        try:
            answer = merchant.buy(f"key-{number}", product_id=product.pk, quantity=1)
            return int(answer.status_code)
        finally:
            connection.close()

    def hold() -> Any:
        return hold_codes(codes=batch.its_codes, reason="recall", held_by="shell:anna")

    with ThreadPoolExecutor(4) as buyers:
        answers = [buyers.submit(buy, number) for number in range(40)]
        answers[4].result()
        with in_background(hold) as holding:
            _, held = holding.result()
        return held, [answer.result() for answer in answers]


def test_a_batch_is_held_in_the_middle_of_sales(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "race", 60)
    held, statuses = hold_while_merchants_buy(product, batch)
    assert set(statuses) == {201, 409}
    assert statuses.count(201) == 60 - held
    assert count_codes(batch) == {"in-stock": 0, "held": held, "sold": 60 - held, "void": 0}
    assert reconcile()["ok"] is True


def test_without_the_lock_of_the_shelf_they_meet(
    product: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a purchase has the shelf and waits for a code. The hold has the code and waits
    for the shelf."""
    batch, merchant = import_batch(product, tmp_path, "race", 3), make_merchant()
    buy = partial(with_own_http(merchant).buy, product_id=product.pk, quantity=1)
    with ThreadPoolExecutor(1) as pool:
        sales: list[Future[Any]] = []

        def change_stock_late(hold: CodeHold, *, by: int) -> None:
            sales.append(start(pool, buy))
            with in_background(wait_for_waiting) as waited:
                waited.result()
            execute("SET LOCAL deadlock_timeout = '10ms'")  # the purchase is not the one that fails
            change_stock(hold, by=by)

        monkeypatch.setattr("catalogue.stock.holds._lock_shelves", lambda codes: None)
        monkeypatch.setattr("catalogue.stock.holds._change_stock", change_stock_late)
        with pytest.raises(OperationalError, match="deadlock detected"):
            hold_codes(codes=batch.its_codes, reason="recall", held_by="shell:anna")
        assert sales[0].result().status_code == 201


def test_a_batch_keeps_its_codes(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 3)
    changes: list[dict[str, Any]] = [
        {"id": batch.pk + 9},
        {"shelf": own_shelf(make_product())},
        {"first_code": 1},
        {"last_code": batch.last_code + 1},
        {"file_digest": b"x"},
        {"imported_by": "x"},
        {"imported_at": Now()},
    ]
    for change in changes:
        with pytest.raises(DatabaseError), transaction.atomic():
            Batch.objects.filter(pk=batch.pk).update(**change)
    with pytest.raises(IntegrityError), transaction.atomic():
        Batch.objects.create(
            shelf=batch.shelf, first_code=9, last_code=8, file_digest=b"", imported_by="x"
        )
    Batch.objects.filter(pk=batch.pk).update(supplier="another")


def test_staff_hold_recall_release_and_void(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 5)
    order = make_merchant().buy(product_id=product.pk, quantity=2).json()["data"]
    staff = make_staff(*MAY)
    browser = signed_in(staff)

    browser.post(url(batch, "hold"), {"reason": "wrong region"})
    page = signed_in().get(url(batch.shelf)).text
    assert f">hold {CodeHold.objects.latest('pk').pk}</a>" in page
    assert "hold: <a" not in page

    hold = CodeHold.objects.latest("pk")
    assert (hold.reason, hold.held_by) == ("wrong region", f"admin:{staff.username}")
    assert "2 sold, 3 held" in browser.get(url(batch)).content.decode()
    assert order["reference"] in browser.get(url(batch, "recall")).content.decode()
    file = browser.get(url(batch, "recall_file")).content.decode()
    assert order["reference"] in file
    assert "mine-0" not in file
    browser.post(url(hold, "release"), {"reason": "checked"})
    assert count_codes(batch)["in-stock"] == 3
    browser.post(url(batch, "hold"), {"reason": "after all"})
    last = CodeHold.objects.latest("pk")
    signed_in(make_staff(*MAY)).post(url(last, "void"), {"reason": "bad"})
    assert count_codes(batch)["void"] == 3
    assert "void" in str(browser.post(url(last, "release"), {"reason": "x"}, follow=True).content)
    assert count_codes(batch)["void"] == 3
    entries = AuditEntry.objects.filter(object_type="catalogue.codehold")
    assert [each.action for each in entries.order_by("pk")] == [
        AuditAction.CODES_HELD,
        AuditAction.CODES_RELEASED,
        AuditAction.CODES_HELD,
        AuditAction.CODES_VOIDED,
    ]


def test_codes_are_voided_by_another_person_than_their_holder(
    product: Product, tmp_path: Path
) -> None:
    batch = import_batch(product, tmp_path, "mine", 3)
    Batch.objects.filter(pk=batch.pk).update(unit_cost="1.25", cost_currency="USD")
    rights = (*MAY, "catalogue.view_vouchercode")
    stan, stella = make_staff(*rights), make_staff(*rights)
    holder, other = signed_in(stan), signed_in(stella)
    holder.post(url(batch, "hold"), {"reason": "t"})
    hold, code = CodeHold.objects.get(), VoucherCode.objects.get(pk=batch.first_code)
    selected = {"action": "void_selected", "_selected_action": [code.pk]}
    pages = [url(row, "void") for row in (hold, batch, code)]

    for page, form in [*((page, {}) for page in pages), (list_url(VoucherCode), selected)]:
        done = holder.post(page, {**form, "reason": "t"}, follow=True).content.decode()
        assert "You held these codes yourself" in done
        assert stella.username in done
    assert count_codes(batch)["void"] == 0

    costs = ("Codes: 3. Cost: 3.75", "Codes: 3. Cost: 3.75", "Codes: 1. Cost: 1.25")
    for page, cost in zip(pages, costs, strict=True):
        assert cost in other.get(page).content.decode()
    other.post(url(code, "void"), {"reason": "used"})
    assert count_codes(batch) == {"in-stock": 0, "sold": 0, "held": 2, "void": 1}
    part = CodeHold.objects.latest("pk")
    assert part.held_by == f"admin:{stan.username}"


def test_the_page_of_a_batch_offers_what_is_possible(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 2)
    stan, stella = make_staff(*MAY), make_staff(*MAY)
    holder, other = signed_in(stan), signed_in(stella)

    def offered(browser: Any) -> list[str]:
        page = browser.get(url(batch)).content.decode()
        steps = ("hold", "take_back", "release", "void")
        return [step for step in steps if f'href="{url(batch, step)}"' in page]

    assert offered(holder) == ["hold", "take_back"]
    holder.post(url(batch, "hold"), {"reason": "t"})
    assert offered(holder) == ["take_back", "release"]
    assert f"Ask one of these: {stella.username}" in holder.get(url(batch)).content.decode()
    assert offered(other) == ["take_back", "release", "void"]
    other.post(url(batch, "void"), {"reason": "t", "holds": f"{CodeHold.objects.get().pk}:2"})
    assert count_codes(batch)["void"] == 2
    assert offered(other) == []


def test_the_list_counts_few_codes_now_and_names_the_day_of_other_counts(
    product: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MOST_COUNTED", 5)
    many, few, new = (
        import_batch(product, tmp_path, name, number)
        for name, number in (("many", 6), ("few", 3), ("new", 7))
    )
    count_stock()
    DailyStock.objects.filter(batch=new).delete()
    merchant = make_merchant(balance="10.00")
    assert merchant.buy(product_id=product.pk, quantity=7).status_code == 201
    browser = signed_in()

    def left() -> dict[str, str]:
        rows = browser.get(list_url(Batch)).context["cl"].result_list
        page: Any = site.get_model_admin(Batch)
        found = {row.pk: page.left(row) for row in rows}
        return {"many": found[many.pk], "few": found[few.pk], "new": found[new.pk]}

    day = local_day(DailyStock.objects.filter(batch=many).get().day)
    assert left() == {"many": f"6 on {day}", "few": "2", "new": "not counted yet"}
    assert merchant.buy(product_id=product.pk, quantity=2).status_code == 201
    assert left()["few"] == "0"
    hold_codes(codes=new.its_codes, reason="t", held_by="test")
    assert left() == {"many": "0", "few": "0", "new": "0"}
    (hold,) = browser.get(list_url(CodeHold)).context["cl"].result_list
    assert hold.number == 7


def test_pages_of_holds_name_what_they_are_about(product: Product, tmp_path: Path) -> None:
    browser, batch = signed_in(), import_batch(product, tmp_path, "mine", 3)
    name = str(own_shelf(product))

    assert f"{name}: 3 in stock" in browser.get(url(batch, "hold")).content.decode()
    browser.post(url(batch, "hold"), {"reason": "x"})
    assert "None of these codes is in stock." in browser.get(url(batch, "hold")).content.decode()
    hold = CodeHold.objects.get()
    assert f"{name}: 3 held" in browser.get(url(hold, "void")).content.decode()
    assert name in browser.get(list_url(CodeHold)).content.decode()
    shown = browser.get(url(hold)).content.decode()
    assert f'3 · <a href="{url(own_shelf(product))}"' in shown
    assert f'<a href="{url(batch)}"' in shown

    make_product(codes=1, name="Another product")
    hold_codes(codes=Q(), reason="all", held_by="x", actor=None)
    page = browser.get(url(CodeHold.objects.latest("pk"), "release")).content.decode()
    assert "Another product: 1 held" in page


@pytest.mark.parametrize("end", ["release", "void"])
def test_a_hold_that_has_ended_offers_nothing(end: str, product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 3)
    hold_codes(codes=batch.its_codes, reason="t", held_by="x")
    hold = CodeHold.objects.get()
    browser, steps = signed_in(make_staff(*MAY)), ("release", "void")

    def offered() -> list[str]:
        page = browser.get(url(hold)).text
        return [step for step in steps if f'href="{url(hold, step)}"' in page]

    assert offered() == list(steps)
    browser.post(url(hold, end), {"reason": "t"})
    assert offered() == []
    counts = count_codes(batch)
    for step in steps:
        assert "This hold has ended." in browser.get(url(hold, step), follow=True).text
        answer = browser.post(url(hold, step), {"reason": "t"}, follow=True).text
        assert "This hold has ended." in answer
    assert count_codes(batch) == counts
    state = "void" if end == "void" else "released"
    badge = rf"<span[^>]*uppercase[^>]*>\s*{state}\s*</span>"
    assert re.search(badge, browser.get(url(hold)).text)


def test_staff_hold_one_code_or_a_selection(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 6)
    make_merchant().buy(product_id=product.pk, quantity=1)
    sold, one, two, three, *_ = VoucherCode.objects.filter(batch.its_codes).order_by("pk")
    browser = signed_in(make_staff(*MAY, "catalogue.view_vouchercode"))
    assert "Hold…" in browser.get(url(one)).content.decode()
    assert url(sold, "hold") not in browser.get(url(sold)).content.decode()

    browser.post(url(one, "hold"), {"reason": "customer complained"})
    chosen = {"action": "hold_selected", "_selected_action": [sold.pk, one.pk, two.pk, three.pk]}
    asked = browser.post(list_url(VoucherCode), chosen).content.decode()
    assert "Hold 4 selected codes?" in asked
    assert asked.count('name="_selected_action"') == 4
    done = browser.post(list_url(VoucherCode), {**chosen, "reason": "seen in public"}, follow=True)

    assert "2 codes are held as hold" in done.content.decode()
    assert [each.codes.count() for each in CodeHold.objects.order_by("pk")] == [1, 2]
    assert count_codes(batch) == {"in-stock": 2, "sold": 1, "held": 3, "void": 0}
    assert own_shelf(product).available_stock == 2


def test_all_codes_that_a_list_shows_can_be_held(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 120)
    import_batch(make_product(), tmp_path, "other", 1)
    browser = signed_in(make_staff(*MAY, "catalogue.view_vouchercode"))
    shown = list_url(VoucherCode, shelf__id__exact=batch.shelf_id)
    chosen = {
        "action": "hold_selected",
        "_selected_action": [batch.first_code],
        "select_across": "1",
    }

    assert "Hold 120 selected codes?" in browser.post(shown, chosen).content.decode()
    browser.post(shown, {**chosen, "reason": "all of them"})

    assert CodeHold.objects.get().codes.count() == count_codes(batch)["held"] == 120


def test_only_people_who_may_hold_codes_do(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 2)
    browser = signed_in(make_staff(*MAY[:2]))
    assert browser.post(url(batch, "hold"), {"reason": "x"}).status_code in {302, 403}
    assert count_codes(batch)["in-stock"] == 2


def test_staff_void_some_held_codes_and_release_the_rest(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 6)
    staff = make_staff(*MAY, "catalogue.view_vouchercode")
    browser = signed_in(staff)
    browser.post(url(batch, "hold"), {"reason": "checking"})
    hold = CodeHold.objects.get()
    bad = list(VoucherCode.objects.filter(batch.its_codes).order_by("pk"))[:2]
    shown = list_url(VoucherCode, state="held")
    chosen = {"action": "void_selected", "_selected_action": [code.pk for code in bad]}

    other = make_staff(*MAY, "catalogue.view_vouchercode")
    second = signed_in(other)
    assert "Void 2 selected codes?" in second.post(shown, chosen).content.decode()
    assert count_codes(batch)["void"] == 0
    done = second.post(shown, {**chosen, "reason": "unreadable"}, follow=True)
    assert "2 codes are void." in done.content.decode()
    assert url(batch, "release") in browser.get(url(batch)).content.decode()
    question = browser.get(url(batch, "release")).content.decode()
    assert f"Release 4 held codes of batch {batch.pk}?" in question
    browser.post(url(batch, "release"), {"reason": "fine"})

    assert count_codes(batch) == {"in-stock": 4, "sold": 0, "held": 0, "void": 2}
    assert own_shelf(product).available_stock == 4
    assert url(batch, "release") not in browser.get(url(batch)).content.decode()
    voided = CodeHold.objects.exclude(pk=hold.pk).get()
    assert (voided.reason, voided.held_by) == ("checking", f"admin:{staff.username}")
    assert (voided.held_at, voided.voided_at is not None) == (hold.held_at, True)
    entries = AuditEntry.objects.filter(actor__in=(staff, other), object_type="catalogue.codehold")
    assert list(entries.order_by("pk").values_list("action", "object_id", "note")) == [
        (AuditAction.CODES_HELD, str(hold.pk), "Codes: 6. checking"),
        (AuditAction.CODES_VOIDED, str(hold.pk), f"Codes: 2. Moved to {voided}. unreadable"),
        (AuditAction.CODES_VOIDED, str(voided.pk), "Codes: 2. unreadable"),
        (AuditAction.CODES_RELEASED, str(hold.pk), "Codes: 4. fine"),
    ]
    assert reconcile()["ok"] is True


@pytest.mark.parametrize("page", ["change", "release", "void"])
def test_a_page_counts_the_codes_of_a_batch_once(
    page: str, product: Product, tmp_path: Path
) -> None:
    batch = import_batch(product, tmp_path, "mine", 3)
    hold_codes(codes=batch.its_codes, reason="checking", held_by="shell:anna")
    browser = signed_in(make_staff(*MAY))

    with CaptureQueriesContext(connection) as queries:
        assert browser.get(url(batch, page)).status_code == 200

    table = 'FROM "catalogue_vouchercode"'
    counts = [one["sql"] for one in queries if table in one["sql"] and "COUNT(" in one["sql"]]
    assert len(counts) == 1, counts


def test_only_what_a_person_has_seen_is_released(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 4)
    browser = signed_in(make_staff(*MAY, "catalogue.view_vouchercode"))
    codes = list(VoucherCode.objects.filter(batch.its_codes).order_by("pk"))
    browser.post(url(codes[0], "hold"), {"reason": "checking"})
    first = CodeHold.objects.get()
    asked = browser.get(url(batch, "release")).content.decode()
    assert f"1 of hold {first.pk}: checking" in asked
    form = {"reason": "good", "holds": f"{first.pk}:1"}
    assert f'name="holds" value="{form["holds"]}"' in asked

    browser.post(url(codes[1], "hold"), {"reason": "recalled"})
    done = browser.post(url(batch, "release"), form, follow=True).content.decode()
    assert "Nothing was changed. Look again." in done
    assert count_codes(batch)["held"] == 2

    other = signed_in(make_staff(*MAY))
    assert "1 of hold" in other.get(url(batch, "void")).content.decode()
    seen = " ".join(f"{hold.pk}:1" for hold in CodeHold.objects.order_by("pk"))
    browser.post(url(batch, "release"), {"reason": "good", "holds": seen})
    assert count_codes(batch)["held"] == 0


def test_codes_of_lost_purchases_are_released_with_their_whole_hold_only(
    product: Product, tmp_path: Path
) -> None:
    """Merchants may have them since before the restore."""
    batch = import_batch(product, tmp_path, "mine", 2)
    browser = signed_in(make_staff(*MAY, "catalogue.view_vouchercode"))
    hold_codes(codes=batch.its_codes, reason="lost by a restore", held_by="shell:anna")
    make_lost_purchase(make_merchant().client, hold=CodeHold.objects.get())

    for end in ("release", "void"):
        done = browser.post(url(batch, end), {"reason": "x"}, follow=True).content.decode()
        assert "Release or void it on its own page." in done
    assert count_codes(batch)["held"] == 2


def test_a_selection_with_a_code_that_is_not_held_changes_nothing(
    product: Product, tmp_path: Path
) -> None:
    batch = import_batch(product, tmp_path, "mine", 4)
    make_merchant().buy(product_id=product.pk, quantity=1)
    browser = signed_in(make_staff(*MAY, "catalogue.view_vouchercode"))
    sold, held, free, void = VoucherCode.objects.filter(batch.its_codes).order_by("pk")
    for code in (held, void):
        browser.post(url(code, "hold"), {"reason": "checking"})
    second = make_staff(*MAY, "catalogue.view_vouchercode")
    signed_in(second).post(url(void, "void"), {"reason": "bad"})
    browser = signed_in(second)
    before, holds = count_codes(batch), CodeHold.objects.count()

    for action in ("release_selected", "void_selected"):
        for other in (sold, free, void):
            chosen = {"action": action, "_selected_action": [held.pk, other.pk], "reason": "x"}
            for state in ({}, {"state": "held"}):  # there, the other code is not shown any more
                done = browser.post(list_url(VoucherCode, **state), chosen, follow=True)
                assert "Some of these codes are not held." in done.content.decode()
        chosen["_selected_action"] = [free.pk]
        done = browser.post(list_url(VoucherCode), chosen, follow=True)
        assert "None of these codes is held." in done.content.decode()

    assert (count_codes(batch), CodeHold.objects.count()) == (before, holds)
    assert before == {"in-stock": 1, "sold": 1, "held": 1, "void": 1}
    assert own_shelf(product).available_stock == 1


def test_the_page_of_a_code_releases_or_voids_it(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 3)
    browser = signed_in(make_staff(*MAY, "catalogue.view_vouchercode"))
    browser.post(url(batch, "hold"), {"reason": "checking"})
    good, bad, _rest = VoucherCode.objects.filter(batch.its_codes).order_by("pk")

    def offers(code: VoucherCode) -> list[str]:
        page = browser.get(url(code)).content.decode()
        return [name for name in ("hold", "release", "void") if url(code, name) in page]

    assert offers(good) == ["release", "void"]
    assert f"Release code {good.pk}?" in browser.get(url(good, "release")).content.decode()
    browser.post(url(good, "release"), {"reason": "works"})
    other = make_staff(*MAY, "catalogue.view_vouchercode")
    signed_in(other).post(url(bad, "void"), {"reason": "used"})

    assert (offers(good), offers(bad)) == (["hold"], [])
    assert count_codes(batch) == {"in-stock": 1, "sold": 0, "held": 1, "void": 1}


def test_all_held_codes_that_a_list_shows_can_be_voided(product: Product, tmp_path: Path) -> None:
    batch = import_batch(product, tmp_path, "mine", 120)
    browser = signed_in(make_staff(*MAY, "catalogue.view_vouchercode"))
    for half in (0, 60):
        codes = Q(pk__range=(batch.first_code + half, batch.first_code + half + 59))
        hold_codes(codes=codes, reason="checking", held_by="test")
    shown = list_url(VoucherCode, state="held", shelf__id__exact=batch.shelf_id)
    chosen = {"action": "void_selected", "_selected_action": [batch.first_code]}
    across = {**chosen, "select_across": "1"}

    assert "Void 120 selected codes?" in browser.post(shown, across).content.decode()
    browser.post(shown, {**across, "reason": "all of them"})

    assert count_codes(batch)["void"] == 120
    assert CodeHold.objects.filter(voided_at__isnull=False).count() == 2


def test_only_people_who_may_hold_codes_release_or_void_them(
    product: Product, tmp_path: Path
) -> None:
    batch = import_batch(product, tmp_path, "mine", 2)
    hold_codes(codes=batch.its_codes, reason="checking", held_by="test")
    code = VoucherCode.objects.get(pk=batch.first_code)
    browser = signed_in(make_staff(*MAY[:2], "catalogue.view_vouchercode"))
    assert url(batch, "release") not in browser.get(url(batch)).content.decode()
    for name in ("release", "void"):
        for row in (batch, code):
            assert browser.post(url(row, name), {"reason": "x"}).status_code in {302, 403}
        chosen = {"action": f"{name}_selected", "_selected_action": [code.pk], "reason": "x"}
        browser.post(list_url(VoucherCode), chosen)
    assert count_codes(batch)["held"] == 2
