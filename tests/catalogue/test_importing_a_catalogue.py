"""`import_catalogue` creates or updates by id what its file lists: all of it, or nothing."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from audit.models import AuditAction
from catalogue.models import Category, Product, Shelf, Variation
from core.command_line import shell_actor
from tests.audited import recorded
from tests.commands import refusal, run
from tests.concurrency.racing import scalar
from tests.factories import Merchant, make_merchant, make_product, make_variation, own_shelf

# The files name small ids, which the neighbour has.
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

CATALOGUE: dict[str, Any] = {
    "categories": [{"id": 1, "name": "Gift cards", "active": True}],
    "products": [
        {
            "id": 10,
            "name": "Steam 10",
            "type": "voucher",
            "category": 1,
            "currency": "USD",
            "active": True,
            "price": "9.99",
            "quantity_step": 1,
            "variations": [
                {"id": 100, "name": "EU", "price": "9.49", "quantity_step": 2, "active": True}
            ],
        }
    ],
}
NOTHING = {"created": 0, "updated": 0, "unchanged": 0}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalogue.json"


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    """The catalogue with another value at one place; `...` removes it."""
    catalogue: Any = json.loads(json.dumps(CATALOGUE))
    place = catalogue
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return dict(catalogue)


def write(file: Path, content: Any) -> Path:
    file.write_text(json.dumps(content))
    return file


def test_a_merchant_sees_what_the_file_lists(file: Path, merchant: Merchant) -> None:
    printed = run("import_catalogue", write(file, CATALOGUE))

    assert printed == {
        "categories": {**NOTHING, "created": 1},
        "products": {**NOTHING, "created": 1},
        "variations": {**NOTHING, "created": 1},
        "topup_products": NOTHING,
    }
    assert merchant.get("/products/10").json()["data"] == {
        "id": 10,
        "name": "Steam 10",
        "type": "voucher",
        "currency": "USD",
        "merchant_reference": None,
        "available_stock": 0,
        "in_stock": False,
        "price": 9.99,
        "quantity_step": 1,
        "sellable": True,
        "variations": [
            {
                "id": 100,
                "name": "EU",
                "merchant_reference": None,
                "available_stock": 0,
                "price": 9.49,
                "quantity_step": 2,
                "sellable": True,
            }
        ],
    }


def test_a_check_lists_each_change_and_the_dangerous_ones_first(file: Path) -> None:
    run("import_catalogue", write(file, CATALOGUE))
    (product,) = CATALOGUE["products"]
    changed = {**product, "name": "Another", "price": "9.00", "quantity_step": 3, "active": False}

    checked = run("import_catalogue", write(file, {"products": [changed]}), "--check")

    found = [
        (one["danger"], one["value"], one["before"], one["after"]) for one in checked["changes"]
    ]
    assert found == [
        ("lower price", "price", "9.9900", "9.0000"),
        ("other step", "quantity_step", "1", "3"),
        ("switched on or off", "active", "true", "false"),
        ("", "name", "Steam 10", "Another"),
    ]
    assert checked["changes"][0]["one_before"] == "9.9900"
    assert checked["changes"][0]["one_after"] == "3.0000"


def test_a_check_lists_each_new_row(file: Path) -> None:
    gems = {"id": 5, "name": "Gems", "currency": "USD", "price": "1"}
    run("import_catalogue", write(file, {"topup_products": [gems]}))
    coins = {**gems, "id": 6, "name": "Coins"}

    content = {**CATALOGUE, "topup_products": [gems, coins]}
    checked = run("import_catalogue", write(file, content), "--check")

    new = [one for one in checked["changes"] if one["value"] == "name"]
    assert [(one["kind"], one["id"], one["before"], one["after"]) for one in new] == [
        ("category", "1", "", "Gift cards"),
        ("product", "10", "", "Steam 10"),
        ("variation", "100", "", "EU"),
        ("topup_product", "6", "", "Coins"),
    ]


def test_a_check_lists_changes_of_stock_fields_and_options(file: Path) -> None:
    options = [{"value": "eu", "label": "Europe"}, {"value": "us"}]
    field = {"id": 1, "name": "server", "label": "Server", "type": "dropdown", "options": options}
    gems = {
        **{"id": 5, "name": "Gems", "currency": "USD", "price": "1"},
        **{"available_stock": 3, "published": True, "fields": [field]},
    }
    run("import_catalogue", write(file, {"topup_products": [gems]}))
    fewer = {**field, "options": options[:1], "required": False}
    now = {**gems, "available_stock": None, "published": False, "fields": [fewer]}

    checked = run("import_catalogue", write(file, {"topup_products": [now]}), "--check")

    assert [
        (one["danger"], one["value"], one["before"], one["after"]) for one in checked["changes"]
    ] == [
        ("no longer counted", "available_stock", "3", ""),
        ("switched on or off", "published", "true", "false"),
        (
            *("", "fields"),
            "server (Server, dropdown: eu Europe / us)",
            "server (Server, dropdown: eu Europe, optional)",
        ),
    ]


def test_the_same_file_again_changes_nothing(file: Path) -> None:
    run("import_catalogue", write(file, CATALOGUE))

    printed = run("import_catalogue", file)

    once = {**NOTHING, "unchanged": 1}
    assert printed == {
        "categories": once,
        "products": once,
        "variations": once,
        "topup_products": NOTHING,
    }


def test_a_changed_price_updates_its_row_and_no_other(file: Path) -> None:
    run("import_catalogue", write(file, CATALOGUE))

    printed = run(
        "import_catalogue", write(file, changed(["products", 0, "variations", 0, "price"], 9.2501))
    )

    assert printed["products"]["unchanged"] == 1
    assert printed["variations"]["updated"] == 1
    assert Shelf.objects.get(variation=100).price == Decimal("9.2501")


def test_what_the_file_leaves_out_stays(file: Path) -> None:
    run("import_catalogue", write(file, CATALOGUE))
    run("import_catalogue", write(file, changed(["products", 0, "active"], False)))

    short = {"products": [{"id": 10, "name": "Steam, ten", "currency": "USD"}]}
    run("import_catalogue", write(file, short))

    product = Product.objects.get()
    assert (product.name, product.active, product.category_id) == ("Steam, ten", False, 1)
    assert own_shelf(product).price == Decimal("9.99")
    assert Variation.objects.get().active


def test_null_takes_a_price_and_a_category_away(file: Path) -> None:
    run("import_catalogue", write(file, CATALOGUE))

    row = {"id": 10, "name": "S", "currency": "USD", "price": None, "category": None, "type": None}
    run("import_catalogue", write(file, {"products": [row]}))

    product = Product.objects.get()
    assert (product.category, product.type, own_shelf(product).price) == (None, None, None)


def test_stock_survives_an_update(file: Path) -> None:
    product = make_product(price="0.40", codes=3)
    row = {"id": product.pk, "name": "New", "currency": "USD", "price": "1.5", "quantity_step": 3}

    run("import_catalogue", write(file, {"products": [row]}))

    bought = make_merchant().buy(product_id=product.pk, quantity=3)
    assert bought.json()["data"]["total_price"] == 1.5


def test_rows_made_elsewhere_get_ids_past_those_of_the_file(file: Path) -> None:
    highest = max(make_product().pk, make_variation(make_product()).pk) + 1000
    content = {
        "categories": [{"id": highest, "name": "C"}],
        "products": [
            {
                "id": highest,
                "name": "P",
                "currency": "USD",
                "variations": [{"id": highest, "name": "V"}],
            }
        ],
    }

    run("import_catalogue", write(file, content))

    product = make_product()
    assert product.pk > highest
    assert make_variation(product).pk > highest
    assert Category.objects.create(name="D").pk > highest


def test_low_ids_do_not_move_the_sequence_back(file: Path) -> None:
    """An id that was given out and never committed may be under way in somebody's hands."""
    product = make_product()
    given_out = scalar("SELECT nextval(pg_get_serial_sequence('catalogue_product', 'id'))")

    run(
        "import_catalogue",
        write(file, {"products": [{"id": product.pk, "name": "P", "currency": "USD"}]}),
    )

    assert make_product().pk > given_out


def test_an_empty_file_is_allowed(file: Path) -> None:
    assert set(run("import_catalogue", write(file, {}))) == {
        "categories",
        "products",
        "variations",
        "topup_products",
    }


FIRST = "products[0]"
INNER = "products[0].variations[0]"


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (["products"], {}, "products: "),
        (["products"], None, "products: "),
        (["products", 0], 7, f"{FIRST}: Must be an object."),
        (["products", 0], None, f"{FIRST}: "),
        (["products", 0], "x", f"{FIRST}: Must be an object."),
        (["prodcuts"], [], "prodcuts: Unknown field."),
        (["products", 0, "prise"], 1, f"{FIRST}.prise: Unknown field."),
        (["products", 0, "variations", 0, "categoryy"], 1, f"{INNER}.categoryy: "),
        (["products", 0, "id"], ..., f"{FIRST}.id: This field is required."),
        (["products", 0, "id"], 0, f"{FIRST}.id: "),
        (["products", 0, "id"], "10", f"{FIRST}.id: A valid integer is required."),
        (["products", 0, "id"], 10.0, f"{FIRST}.id: A valid integer is required."),
        (["products", 0, "id"], True, f"{FIRST}.id: A valid integer is required."),
        (["products", 0, "id"], 2**53, f"{FIRST}.id: "),
        (["products", 0, "id"], 10**30, f"{FIRST}.id: "),
        (["products", 0, "name"], ..., f"{FIRST}.name: This field is required."),
        (["products", 0, "name"], "", f"{FIRST}.name: "),
        (["products", 0, "name"], 5, f"{FIRST}.name: "),
        (["products", 0, "name"], "x" * 201, f"{FIRST}.name: "),
        (["products", 0, "name"], "a\x00b", f"{FIRST}.name: "),
        (["products", 0, "name"], "a\ud800b", f"{FIRST}.name: "),
        (["products", 0, "type"], "card", f"{FIRST}.type: "),
        (["products", 0, "type"], [], f"{FIRST}.type: "),
        (["products", 0, "active"], 1, f"{FIRST}.active: "),
        (["products", 0, "active"], "true", f"{FIRST}.active: "),
        (["products", 0, "active"], None, f"{FIRST}.active: "),
        (
            ["products", 0, "currency"],
            "usd",
            f"{FIRST}.currency: Use three capital letters, such as USD.",
        ),
        (
            ["products", 0, "currency"],
            "USD\n",
            f"{FIRST}.currency: Use three capital letters, such as USD.",
        ),
        (["products", 0, "currency"], ..., f"{FIRST}.currency: This field is required."),
        (["products", 0, "category"], 7, f"{FIRST}.category: there is no category 7"),
        (["products", 0, "price"], "0", f"{FIRST}.price: "),
        (["products", 0, "price"], "-1", f"{FIRST}.price: "),
        (["products", 0, "price"], "9.99999", f"{FIRST}.price: "),
        (["products", 0, "price"], 1.00001, f"{FIRST}.price: "),
        (["products", 0, "price"], 10**14, f"{FIRST}.price: "),
        (["products", 0, "price"], 1e300, f"{FIRST}.price: "),
        (["products", 0, "price"], "NaN", f"{FIRST}.price: "),
        (["products", 0, "price"], "ten", f"{FIRST}.price: A valid number is required."),
        (["products", 0, "price"], True, f"{FIRST}.price: A valid number is required."),
        (["products", 0, "price"], [1], f"{FIRST}.price: A valid number is required."),
        (["products", 0, "variations", 0, "price"], "0.00001", f"{INNER}.price: "),
        (["products", 0, "variations", 0, "quantity_step"], 0, f"{INNER}.quantity_step: "),
        (["products", 0, "variations", 0, "quantity_step"], 101, f"{INNER}.quantity_step: "),
        (["products", 0, "variations", 0, "currency"], "USD", f"{INNER}.currency: "),
        (
            ["categories"],
            [{"id": 1, "name": "a"}] * 2,
            "categories[1].id: repeats categories[0].id",
        ),
        (["products"], CATALOGUE["products"] * 2, "products[1].id: repeats products[0].id"),
        (
            ["products", 0, "variations"],
            [{"id": 5, "name": "a"}, {"id": 5, "name": "b"}],
            "products[0].variations[1].id: repeats products[0].variations[0].id",
        ),
    ],
)
def test_a_problem_is_named_by_its_place(
    file: Path, path: list[Any], value: Any, line: str
) -> None:
    assert line in refusal("import_catalogue", write(file, changed(path, value)))

    assert not Category.objects.exists()
    assert not Product.objects.exists()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "line 1, column 1"),
        (b'{"products": [\n{"id": 1,}]}', "line 2, column "),
        (b"[]", "the file: "),
        (b"null", "the file: "),
        (b"7", "the file: "),
        (b'{"products": [{"price": NaN}]}', "NaN is not a JSON number"),
        (b'{"products": [{"price": -Infinity}]}', "-Infinity is not a JSON number"),
        (b'{"products": [], "products": []}', "The name 'products' appears twice"),
        (b"\xff", "is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "Cannot read the file or a number in it"),
    ],
)
def test_a_file_that_is_no_catalogue_is_refused(file: Path, content: bytes, line: str) -> None:
    file.write_bytes(content)

    assert line in refusal("import_catalogue", file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "No such file" in refusal("import_catalogue", tmp_path / "none.json")
    assert "Is a directory" in refusal("import_catalogue", tmp_path)


def test_many_problems_are_counted(file: Path) -> None:
    content = {"categories": [{"id": 0, "name": "x"}] * 30}

    line = refusal("import_catalogue", write(file, content))

    assert line.startswith("categories[0].id: ")
    assert line.endswith("; and 10 more")


def test_all_problems_are_written_to_a_file(file: Path) -> None:
    content = {"categories": [{"id": 0, "name": "x"}] * 30}
    problems = file.with_name("problems.txt")

    refusal("import_catalogue", write(file, content), "--problems", problems)

    lines = problems.read_text().splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"categories[{n}].id" for n in range(30)]


def test_a_variation_never_moves_to_another_product(file: Path) -> None:
    run("import_catalogue", write(file, CATALOGUE))
    content = {
        "products": [
            {
                "id": 11,
                "name": "Other",
                "currency": "USD",
                "variations": [{"id": 100, "name": "EU"}],
            }
        ]
    }

    line = refusal("import_catalogue", write(file, content))

    assert line == "products[0].variations[0].id: belongs to product 10"
    assert not Product.objects.filter(pk=11).exists()


def test_the_currency_of_a_sold_product_stays(file: Path) -> None:
    sold, fresh = make_product(codes=1), make_product(price=None, codes=1)
    make_merchant().buy(product_id=sold.pk, quantity=1)

    def in_euro(product: Product) -> dict[str, Any]:
        return {"products": [{"id": product.pk, "name": "P", "currency": "EUR"}]}

    line = refusal("import_catalogue", write(file, in_euro(sold)))
    assert line == "products[0].currency: the product was sold in USD"
    run("import_catalogue", write(file, in_euro(fresh)))

    assert set(Product.objects.values_list("currency", flat=True)) == {"USD", "EUR"}


def test_a_problem_in_one_part_keeps_the_others_out(file: Path) -> None:
    content = {**CATALOGUE, "topup_products": [{"id": 1}]}

    assert "topup_products[0].price" in refusal("import_catalogue", write(file, content))

    assert not Product.objects.exists()


def test_a_large_catalogue_takes_few_queries(
    file: Path, django_assert_max_num_queries: Any
) -> None:
    products = [
        {
            "id": number,
            "name": "P",
            "currency": "USD",
            "price": "1.00",
            "variations": [{"id": number, "name": "V", "price": "2.00"}],
        }
        for number in range(1, 501)
    ]
    write(file, {"products": products})

    with django_assert_max_num_queries(40):
        assert run("import_catalogue", file)["products"]["created"] == 500


def test_top_up_products_that_stay_as_they_are_take_few_queries(
    file: Path, django_assert_max_num_queries: Any
) -> None:
    field = {"id": 1, "name": "server", "label": "Server", "type": "text"}
    gems = {"name": "Gems", "currency": "USD", "price": "1", "fields": [field]}
    write(file, {"topup_products": [{**gems, "id": number} for number in range(1, 101)]})
    run("import_catalogue", file)

    with django_assert_max_num_queries(40):
        assert run("import_catalogue", file)["topup_products"]["unchanged"] == 100


def test_each_changed_row_has_an_audit_entry_with_old_and_new_values(file: Path) -> None:
    gems = {"id": 5, "name": "Gems", "currency": "USD", "price": "1", "available_stock": 3}
    run("import_catalogue", write(file, {**CATALOGUE, "topup_products": [gems]}))
    made = recorded().filter(pk__gt=recorded().latest("pk").pk)
    now = changed(["products", 0, "name"], "Steam Ten")
    now["products"][0]["variations"][0] |= {"active": False, "quantity_step": 3, "price": "15"}
    now["topup_products"] = [{**gems, "available_stock": 8, "price": "2"}]
    run("import_catalogue", write(file, now))

    shelf = Shelf.objects.get(variation=100)
    entries = list(made.exclude(action=AuditAction.PRODUCTS_IMPORTED).order_by("pk"))
    assert [(one.action, one.object_type, one.object_id, one.changes) for one in entries] == [
        ("changed", "catalogue.product", "10", {"name": ["Steam 10", "Steam Ten"]}),
        ("changed", "catalogue.variation", "100", {"active": [True, False]}),
        (
            *("price_changed", "catalogue.shelf", str(shelf.pk)),
            {"price": ["9.4900", "15.0000"], "quantity_step": [2, 3]},
        ),
        ("price_changed", "topups.topupproduct", "5", {"price": ["1.0000", "2.0000"]}),
        ("changed", "topups.topupproduct", "5", {"available_stock": [3, 8]}),
    ]
    assert {one.actor_name for one in entries} == {shell_actor()}
