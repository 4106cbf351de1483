"""Codes that are held or void are not sold (catalogue/stock/holds.py)."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import count
from threading import Event

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet

from audit.models import AuditAction, AuditEntry
from catalogue.models import CodeHold, Product, Shelf, VoucherCode
from catalogue.stock.holds import (
    NO_CODES,
    count_by_hold,
    end_codes,
    hold_codes,
    release_hold,
    void_hold,
)
from core.database.columns import NOTE_LENGTH
from core.inputs import InputProblem
from operators.upkeep.reconcile import reconcile
from tests.commands import refusal, run
from tests.concurrency.racing import (
    execute,
    holding_locks,
    in_background,
    race,
    scalar,
    start,
    wait_for_waiting,
    weakened_sql,
    with_own_http,
    without_triggers,
)
from tests.factories import Merchant, make_merchant, make_product, own_shelf
from tests.operators.back_office import make_staff


def digests(product: Product, number: int) -> list[bytes]:
    codes = VoucherCode.objects.filter(shelf__product=product).order_by("position")
    return [bytes(code.digest) for code in codes[:number]]


def stock(product: Product) -> int:
    return product.shelves.get().available_stock


def hold(product: Product, number: int) -> CodeHold:
    chosen = Q(digest__in=digests(product, number))
    made, held = hold_codes(codes=chosen, reason="test", held_by="shell:anna")
    assert made is not None
    assert held == number
    return made


@pytest.mark.django_db(transaction=True)
def test_a_held_code_is_not_sold_and_a_released_one_is() -> None:
    product, merchant = make_product(price="1.00", codes=3), make_merchant(balance="10.00")
    first = hold(product, 2)
    assert stock(product) == 1
    assert merchant.buy(product_id=product.pk, quantity=2).status_code == 409
    assert run("reconcile")["findings"] == []

    assert run("release_codes", first.pk) == {"hold": first.pk, "released": 2}

    assert stock(product) == 3
    assert merchant.buy(product_id=product.pk, quantity=3).status_code == 201
    assert run("reconcile")["findings"] == []
    entries = AuditEntry.objects.filter(object_type=first._meta.label_lower, object_id=first.pk)
    assert set(entries.values_list("action", flat=True)) == {
        AuditAction.CODES_HELD,
        AuditAction.CODES_RELEASED,
    }


@pytest.mark.django_db(transaction=True)
def test_the_codes_that_are_sold_next_are_held() -> None:
    product, other = make_product(price="1.00", codes=5), make_product(price="1.00", codes=1)
    merchant = make_merchant(balance="10.00")
    first = digests(product, 5)
    merchant.buy(product_id=product.pk, quantity=1)
    expire = "UPDATE catalogue_vouchercode SET expires_on = '2020-01-01' WHERE digest = %s"
    without_triggers(expire, first[1])

    assert "above 0" in refusal("hold_codes", "--next", "0")
    held = run("hold_codes", "--next", "2")

    codes = VoucherCode.objects.filter(hold=held["hold"], shelf__product=product)
    assert [bytes(code.digest) for code in codes.order_by("position")] == first[2:4]
    assert (stock(product), stock(other)) == (2, 0)
    assert run("reconcile")["findings"] == []


@pytest.mark.django_db(transaction=True)
def test_void_codes_stay_void() -> None:
    product = make_product(price="1.00", codes=3)
    voided = hold(product, 2)
    assert run("void_codes", voided.pk) == {"hold": voided.pk, "voided": 2}
    assert f"hold {voided.pk} are void" in refusal("release_codes", voided.pk)
    assert f"hold {voided.pk} are void" in refusal("void_codes", voided.pk)
    assert "no code hold 0" in refusal("release_codes", 0)
    assert stock(product) == 1
    assert run("reconcile")["findings"] == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("UPDATE catalogue_vouchercode SET order_id = 1 WHERE hold_id = %s", "held"),
        ("DELETE FROM catalogue_vouchercode WHERE hold_id = %s", "held"),
        ("UPDATE catalogue_vouchercode SET hold_id = NULL WHERE hold_id = %s", "void"),
        ("UPDATE catalogue_codehold SET voided_at = NULL WHERE id = %s", "void"),
        ("UPDATE catalogue_codehold SET reason = 'other' WHERE id = %s", "held"),
        ("UPDATE catalogue_codehold SET held_at = now() WHERE id = %s", "held"),
        ("UPDATE catalogue_codehold SET held_by = 'other' WHERE id = %s", "held"),
    ],
)
def test_the_database_refuses(statement: str, state: str) -> None:
    made = hold(make_product(codes=1), 1)
    if state == "void":
        void_hold(made.pk)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, [made.pk])


@pytest.mark.django_db
def test_the_database_lets_a_void_code_be_saved_as_it_is() -> None:
    made = hold(make_product(codes=1), 1)
    void_hold(made.pk)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE catalogue_vouchercode SET hold_id = hold_id WHERE hold_id = %s", [made.pk]
        )


@pytest.mark.django_db
def test_a_void_hold_does_not_keep_other_codes() -> None:
    product = make_product(codes=2)
    void_hold(hold(product, 1).pk)
    second = Q(digest__in=digests(product, 2)[1:])
    other, _ = hold_codes(codes=second, reason="test", held_by="shell:anna")
    assert other is not None
    assert release_hold(other.pk) == 1


@pytest.mark.django_db(transaction=True)
def test_a_code_that_is_being_voided_is_not_released_by_sql() -> None:
    made = hold(make_product(codes=1), 1)

    def release() -> None:
        VoucherCode.objects.filter(hold=made).update(hold=None)

    voiding = "UPDATE catalogue_codehold SET voided_at = now() WHERE id = %s"
    with holding_locks(voiding, made.pk) as other, in_background(release) as released:
        wait_for_waiting()
        other.commit()
    with pytest.raises(DatabaseError, match="is void"):
        released.result()


@pytest.mark.django_db
def test_sold_codes_and_unknown_digests_are_not_held() -> None:
    product, merchant = make_product(price="1.00", codes=1), make_merchant(balance="10.00")
    merchant.buy(product_id=product.pk, quantity=1)
    wanted = [*digests(product, 1), b"unknown"]
    assert hold_codes(codes=Q(digest__in=wanted), reason="test", held_by="shell:anna") == (None, 0)
    assert not CodeHold.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_everything_in_stock_can_be_held() -> None:
    product = make_product(price="1.00", codes=3)
    answer = run("hold_codes", "--all")
    assert stock(product) == 0
    assert answer["codes_held"] == VoucherCode.objects.filter(hold=answer["hold"]).count() >= 3
    assert run("reconcile")["findings"] == []


@pytest.mark.django_db(transaction=True)
def test_purchases_and_holds_of_one_shelf_lose_no_code() -> None:
    """Each code is either sold or held, whatever the order; nobody deadlocks."""
    product, merchant = make_product(price="1.00", codes=30), make_merchant(balance="100.00")

    def buy(number: int) -> int:
        answer = merchant.buy(f"race-{number}", product_id=product.pk, quantity=1)
        connection.close()
        return int(answer.status_code)

    def hold_and_release(number: int) -> int:
        made, held = hold_codes(
            codes=Q(digest__in=digests(product, 30)), reason=f"race {number}", held_by="shell:anna"
        )
        if made and number % 2:
            release_hold(made.pk)
            held = 0
        connection.close()
        return held

    with ThreadPoolExecutor(4) as pool:
        bought = [pool.submit(buy, number) for number in range(20)]
        holds = [pool.submit(hold_and_release, number) for number in range(4)]
        sold = [each.result() for each in bought].count(201)
        held = sum(each.result() for each in holds)
    assert sold + held + stock(product) == 30
    assert run("reconcile")["findings"] == []


@contextmanager
def selling_held_codes() -> Iterator[None]:
    """Neither the purchase nor the table knows that a code is held."""
    name, table = "catalogue_code_sold_is_not_held", "catalogue_vouchercode"
    rule = scalar("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", name)
    execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    try:
        with weakened_sql("catalogue/sql/take_codes.sql", ("AND hold_id IS NULL", "")):
            yield
    finally:
        without_triggers(f"UPDATE {table} SET hold_id = NULL WHERE order_id IS NOT NULL")
        execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {rule}")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
def test_no_code_is_sold_after_a_recall_in_the_middle_of_sales(guarded: bool) -> None:
    product = make_product(price="1.00", codes=60)
    merchants = [make_merchant() for _ in range(3)]
    sold = count(1)

    def buy_all(merchant: Merchant) -> None:
        while True:
            last = stopped.is_set()
            if merchant.buy(product_id=product.pk, quantity=1).status_code == 201:
                if next(sold) == 15:
                    half_sold.set()
            elif last:
                return

    def recall() -> None:
        try:
            assert half_sold.wait(30)
            stop_sales()
        finally:
            stopped.set()

    def stop_sales() -> None:
        newest = VoucherCode.objects.filter(shelf=own_shelf(product)).order_by("-pk")[:30]
        _, number = hold_codes(
            codes=Q(pk__in=list(newest.values_list("pk", flat=True))), reason="x", held_by="x"
        )
        if not guarded:  # the stock that nobody took away
            more = F("available_stock") + number
            Shelf.objects.filter(product=product).update(available_stock=more)
        recalled.append(number)  # less than 30 if quick sales were first

    half_sold, stopped = Event(), Event()
    recalled: list[int] = []
    with nullcontext() if guarded else selling_held_codes():
        race([recall, *(partial(buy_all, with_own_http(one)) for one in merchants)])
        held = VoucherCode.objects.filter(hold__isnull=False, shelf=own_shelf(product))
        assert [held.count()] == recalled
        assert recalled[0] > 0
        assert held.filter(order_id__isnull=False).exists() is not guarded


@pytest.mark.django_db
def test_a_void_hold_is_refused_by_the_service() -> None:
    made = hold(make_product(codes=1), 1)
    void_hold(made.pk)
    with pytest.raises(InputProblem, match="void"):
        release_hold(made.pk)


@pytest.mark.django_db(transaction=True)
def test_a_part_of_several_holds_is_released_or_voided() -> None:
    product = make_product(codes=6)
    first = hold(product, 3)
    second, _ = hold_codes(codes=chosen(product, 3, 6), reason="test", held_by="shell:anna")
    assert second is not None

    released = end(release_hold, chosen(product, 2, 4), reason="good")
    voided = end(void_hold, chosen(product, 4, 5), reason="bad")

    assert (released, voided, stock(product)) == (2, 1, 2)
    assert (first.codes.count(), second.codes.count()) == (2, 1)
    parts = CodeHold.objects.filter(pk__gt=second.pk).order_by("pk")
    assert [(one.held_by, one.held_at, one.voided_at is not None) for one in parts] == [
        (first.held_by, first.held_at, False),
        (second.held_by, second.held_at, False),
        (second.held_by, second.held_at, True),
    ]
    assert notes(first) == ["Codes: 3. test", f"Codes: 1. Moved to {parts[0]}. good"]
    assert notes(second) == [
        "Codes: 3. test",
        f"Codes: 1. Moved to {parts[1]}. good",
        f"Codes: 1. Moved to {parts[2]}. bad",
    ]
    assert [notes(one) for one in parts] == [["Codes: 1. good"]] * 2 + [["Codes: 1. bad"]]
    assert run("reconcile")["findings"] == []
    assert release_hold(first.pk) == 2
    assert release_hold(second.pk) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("service", [release_hold, void_hold])
def test_a_hold_whose_codes_are_all_chosen_ends_itself(service: Callable[..., int]) -> None:
    product = make_product(codes=5)
    whole = hold(product, 3)
    other, _ = hold_codes(codes=chosen(product, 3, 5), reason="other", held_by="shell:anna")
    assert other is not None

    assert end(service, chosen(product, 0, 4), reason="supplier") == 4

    is_void = service is void_hold
    assert stock(product) == (0 if is_void else 4)
    whole.refresh_from_db()
    assert (whole.voided_at is not None, whole.codes.count()) == (is_void, 3 if is_void else 0)
    assert notes(whole) == ["Codes: 3. test", "Codes: 3. supplier"]
    assert (other.codes.count(), CodeHold.objects.count()) == (1, 3)


@pytest.mark.django_db
@pytest.mark.parametrize("service", [release_hold, void_hold])
def test_codes_that_are_not_held_are_refused_and_stay(service: Callable[..., int]) -> None:
    product = make_product(codes=3)
    held = hold(product, 1)
    before = AuditEntry.objects.count()
    for first, last, words in ((0, 2, "Some of these"), (1, 3, "None of these"), (0, 0, "None")):
        with pytest.raises(InputProblem, match=words):
            end(service, chosen(product, first, last))
    assert (held.codes.count(), stock(product)) == (1, 2)
    assert (CodeHold.objects.get(), AuditEntry.objects.count()) == (held, before)


@pytest.mark.django_db
@pytest.mark.parametrize("service", [release_hold, void_hold])
def test_codes_that_were_held_after_a_person_looked_stay_held(
    service: Callable[..., int],
) -> None:
    product = make_product(codes=3)
    all_of_it = chosen(product, 0, 3) & Q(hold__isnull=False)
    hold(product, 1)
    seen = count_by_hold(all_of_it)
    recalled, _ = hold_codes(codes=chosen(product, 1, 3), reason="recall", held_by="shell:anna")
    assert recalled is not None

    with pytest.raises(InputProblem, match="meanwhile"):
        end_codes(service, codes=all_of_it, seen=seen, reason="x")

    assert (recalled.codes.count(), stock(product)) == (2, 0)


@pytest.mark.django_db
def test_one_person_voids_no_codes_of_which_that_person_held_some() -> None:
    product, stan = make_product(codes=4), make_staff()
    for first, holder in enumerate(("admin:anna", f"admin:{stan.username}", "expiry")):
        codes = chosen(product, first, first + 1)
        hold_codes(codes=codes, reason="test", held_by=holder, actor=stan)

    def void(first: int, last: int) -> int:
        codes = chosen(product, first, last)
        seen = count_by_hold(codes)
        return end_codes(void_hold, codes=codes, seen=seen, reason="x", actor=stan)

    with pytest.raises(InputProblem, match="another person voids them"):
        void(0, 2)
    assert (void(0, 1), void(2, 3)) == (1, 1)


@pytest.mark.django_db
def test_a_reason_of_any_accepted_length_is_recorded() -> None:
    product, reason = make_product(codes=2), "x" * NOTE_LENGTH
    held, _ = hold_codes(codes=chosen(product, 0, 2), reason=reason, held_by="x")
    assert held is not None
    end(void_hold, chosen(product, 0, 1), reason=reason)
    release_hold(held.pk, note=reason)
    assert {len(note) for note in notes(held)} == {NOTE_LENGTH}


@pytest.mark.django_db(transaction=True)
def test_one_of_two_overlapping_selections_wins_while_codes_are_sold() -> None:
    """What a person selects is released or voided as a whole, or not at all."""
    for number in range(5):
        product, merchant = make_product(price="1.00", codes=30), make_merchant()
        first = hold(product, 30)
        end(release_hold, chosen(product, 0, 5))

        answers = race(
            [
                partial(attempt, release_hold, chosen(product, 5, 20)),
                partial(attempt, void_hold, chosen(product, 12, 30)),
                partial(attempt, release_hold, chosen(product, 18, 25)),
                partial(buy_each, with_own_http(merchant), product, f"race-{number}", 8),
            ]
        )

        released, voided, again, sold = answers
        won = [answer for answer in (released, voided, again) if answer]
        assert voided in (0, 18)
        assert won in ([15], [18], [7])
        void = VoucherCode.objects.filter(
            shelf=own_shelf(product), hold__voided_at__isnull=False
        ).count()
        assert void == voided
        assert sold + stock(product) == 5 + released + again
        assert first.codes.count() == 25 - sum(won)
        assert run("reconcile")["findings"] == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
def test_codes_that_are_just_released_are_not_voided(
    guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit trail stops a release in the middle. Meanwhile somebody voids what is held."""
    product, merchant = make_product(price="1.00", codes=30), make_merchant()
    hold(product, 30)
    held = Q(hold__isnull=False, hold__voided_at=None)
    codes = [chosen(product, *ends) for ends in ((0, 20), (10, 30))]
    if not guarded:
        monkeypatch.setattr("catalogue.stock.holds._lock_holds", read_holds)

    with (
        holding_locks("LOCK TABLE audit_auditentry IN SHARE MODE") as other,
        ThreadPoolExecutor(2) as pool,
    ):
        released = start(pool, attempt, release_hold, codes[0] & held)
        wait_for_waiting(1)
        voided = start(pool, attempt, void_hold, codes[1] & held)
        wait_for_waiting(2)
        other.commit()

    assert (released.result(), buy_each(merchant, product, "afterwards", 1)) == (20, 1)
    assert voided.result() == (0 if guarded else 20)  # not what was seen
    in_stock = VoucherCode.objects.filter(shelf=own_shelf(product), order_id=None, hold=None)
    assert (in_stock.count() == stock(product)) is guarded
    assert reconcile()["ok"] is guarded


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
def test_a_part_and_its_whole_hold_wait_for_each_other_in_turn(
    guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = make_product(codes=3)
    made = hold(product, 3)
    if not guarded:
        monkeypatch.setattr("catalogue.stock.holds._lock_holds", read_holds)
    locking = "SELECT FROM catalogue_codehold WHERE id = %s FOR UPDATE"
    part = chosen(product, 0, 1)

    deadlock = False
    with (
        holding_locks(locking, made.pk) as whole,
        in_background(partial(attempt, void_hold, part)) as voided,
    ):
        wait_for_waiting()
        try:
            whole.execute(
                "UPDATE catalogue_vouchercode SET hold_id = NULL WHERE hold_id = %s", [made.pk]
            )
            whole.commit()
        except psycopg.OperationalError:
            deadlock = True
            whole.rollback()
        try:
            assert voided.result() == 0 or not guarded
        except OperationalError:
            deadlock = True
    assert deadlock is not guarded


def chosen(product: Product, first: int, last: int) -> Q:
    """The codes of a product at these places."""
    return Q(digest__in=digests(product, last)[first:])


def notes(made: CodeHold) -> list[str]:
    about = AuditEntry.objects.filter(object_type="catalogue.codehold", object_id=made.pk)
    return list(about.order_by("pk").values_list("note", flat=True))


def end(service: Callable[..., int], codes: Q, *, reason: str = "x") -> int:
    """Releases or voids codes as they are held now."""
    seen = count_by_hold(codes)
    return end_codes(service, codes=codes, seen=seen, reason=reason)


def attempt(service: Callable[..., int], codes: Q) -> int:
    """The number of codes; 0 if it was refused."""
    try:
        return end(service, codes, reason="race")
    except InputProblem:
        return 0


def buy_each(merchant: Merchant, product: Product, key: str, number: int) -> int:
    """Buys single codes; returns how many purchases succeeded."""
    answers = [
        merchant.buy(f"{key}-{one}", product_id=product.pk, quantity=1) for one in range(number)
    ]
    return [answer.status_code for answer in answers].count(201)


def read_holds(codes: QuerySet[VoucherCode]) -> list[CodeHold]:
    """`_lock_holds` without the lock."""
    ids = codes.order_by().values("hold")
    return list(CodeHold.objects.filter(pk__in=ids, voided_at=None).order_by("pk"))


@pytest.mark.django_db
def test_codes_that_leave_a_hold_for_another_are_recorded_as_moved() -> None:
    first = hold(make_product(codes=2), 2)

    hold_codes(codes=NO_CODES, reason="lost", held_by="shell:anna", held_codes=Q(hold=first))

    entries = AuditEntry.objects.filter(object_type=first._meta.label_lower, object_id=first.pk)
    actions = entries.order_by("pk").values_list("action", flat=True)
    assert list(actions) == [AuditAction.CODES_HELD, AuditAction.CODES_MOVED]
