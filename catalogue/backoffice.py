"""The declarations of `catalogue` for the back office (core/backoffice/)."""

from collections.abc import Iterable

from django.db.models import Q
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.models import AuditAction
from catalogue.models import (
    Batch,
    Category,
    CodeHold,
    PriceList,
    PriceListEntry,
    Product,
    ReferenceLink,
    Shelf,
    Variation,
    VoucherCode,
)
from catalogue.stock.codes import open_code
from catalogue.stock.holds import holds_of_batch
from catalogue.stock.traces import find_codes
from core.backoffice.declarations import (
    BackOffice,
    Check,
    Finder,
    Gauges,
    MenuEntry,
    Personal,
    Rights,
    Sealed,
    Section,
    StaffRight,
    Whose,
    full_access,
    ids_of,
    read_access,
)
from core.backoffice.search import (
    MAX_HITS,
    SHORTEST_NAME,
    by_name,
    by_number,
    newest_first,
)
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import CannotOpen, Context
from core.texts import lazy

CHECKS = [
    Check(
        gettext_noop("a shelf counts the codes it holds"),
        """
        SELECT format('shelf %s counts %s codes and has %s in stock',
                      shelf.id, available_stock, coalesce(in_stock, 0))
          FROM catalogue_shelf AS shelf
          LEFT JOIN (SELECT shelf_id, count(*) AS in_stock FROM catalogue_vouchercode
                      WHERE order_id IS NULL AND hold_id IS NULL GROUP BY shelf_id) AS codes
                 ON shelf_id = shelf.id
         WHERE available_stock <> coalesce(in_stock, 0)
        """,
    ),
    Check(
        gettext_noop(
            "each code has its digest in the table of digests, and no digest is left over"
        ),
        """
        SELECT format('code %s has another digest than the table of digests',
                      coalesce(code.id, stored.code_id))
          FROM catalogue_vouchercode AS code
          FULL JOIN catalogue_codedigest AS stored ON stored.code_id = code.id
         WHERE catalogue_half_digest(code.digest) IS DISTINCT FROM stored.digest
        """,
        weekly=True,
    ),
    Check(
        gettext_noop("no code repeats another but for marks of a spreadsheet"),
        """
        SELECT format('hold %s keeps %s codes that repeat others: void them, or release one each',
                      hold.id, count(*))
          FROM catalogue_codehold AS hold
          JOIN catalogue_vouchercode AS code ON code.hold_id = hold.id
         WHERE held_by = 'repeats' AND voided_at IS NULL
         GROUP BY hold.id
        """,
    ),
    Check(
        gettext_noop("each batch has all of its codes, and shares none"),
        """
        SELECT format('batch %s names %s codes, and %s have its shelf and expiry', batch.id,
                      last_code - first_code + 1, count(code.id))
          FROM (SELECT *, row_number() OVER (ORDER BY first_code) AS place
                  FROM catalogue_batch) AS batch
          -- The place of the last batch that begins before a code: a join by ranges would be slow.
          LEFT JOIN (SELECT id, shelf_id, expires_on, width_bucket(id,
                              ARRAY(SELECT first_code FROM catalogue_batch ORDER BY 1)) AS place
                       FROM catalogue_vouchercode) AS code
                 ON code.place = batch.place AND code.shelf_id = batch.shelf_id
                AND code.id <= last_code AND code.expires_on IS NOT DISTINCT FROM batch.expires_on
         GROUP BY batch.id, first_code, last_code, taken_back_at
        HAVING count(code.id) <>
               CASE WHEN taken_back_at IS NULL THEN last_code - first_code + 1 ELSE 0 END
        UNION ALL
        SELECT format('batch %s begins within the batch before it', id)
          FROM (SELECT id, first_code, lag(last_code) OVER (ORDER BY first_code) AS before
                  FROM catalogue_batch) AS ordered
         WHERE first_code <= before
        """,
        weekly=True,
    ),
    Check(
        gettext_noop("each code is sealed with a key that is in use"),
        """
        SELECT format('%s codes are sealed with key %s, which is not registered; run reseal',
                      count(*), get_byte(sealed, 0))
          FROM catalogue_vouchercode
         GROUP BY get_byte(sealed, 0)
        HAVING get_byte(sealed, 0) NOT IN (SELECT key_id FROM core_encryptionkey)
        """,
        weekly=True,
    ),
]

GAUGES = [
    Gauges(
        {
            "voucher_shelf_codes": "Unsold codes of each shelf with a regular price;"
            " the 1,000 lowest."
        },
        """
        SELECT shelf.id, product.name || coalesce(' / ' || variation.name, ''), available_stock
          FROM catalogue_shelf AS shelf
          JOIN catalogue_product AS product ON product.id = shelf.product_id
          LEFT JOIN catalogue_category AS category ON category.id = product.category_id
          LEFT JOIN catalogue_variation AS variation ON variation.id = shelf.variation_id
         WHERE price IS NOT NULL
           AND catalogue_is_on_sale(product.active, category.active, variation.active)
         ORDER BY available_stock, shelf.id
         LIMIT 1000
        """,
        labels=["shelf", "product"],
        seconds=30,
    )
]


def _find_by_code(text: str) -> Iterable[VoucherCode]:
    try:
        return find_codes(text)
    except CannotOpen:
        return []


def _find_batches(text: str) -> list[Batch]:
    rows = Batch.objects.select_related("shelf__product", "shelf__variation")
    found = list(by_number(rows, text, BATCH))
    if len(text) >= SHORTEST_NAME:
        newest = Batch.objects.order_by("-pk").values("pk")[:NEWEST_BATCHES]
        named = Q(supplier__icontains=text) | Q(invoice__icontains=text)
        found += rows.filter(named, pk__in=newest).order_by("-pk")[:MAX_HITS]
    return found


def _describe_batch(batch: Batch) -> tuple[str, str]:
    about = (str(batch.shelf), batch.supplier, batch.invoice)
    return capfirst(_(BATCH) % {"name": batch.pk}), ", ".join(filter(None, about))


def newest_entries(about: Q) -> list[str]:
    """The ids of the newest 1,000 entries of price lists about something that is sold."""
    newest = PriceListEntry.objects.filter(about).order_by(newest_first())[:1000]
    return [str(pk) for pk in newest.values_list("pk", flat=True)]


BATCH, HOLD = gettext_noop("batch %(name)s"), gettext_noop("hold %(name)s")
NEWEST_BATCHES = 10_000  # that are searched by supplier and invoice

FINDERS = [
    Finder(
        lazy("Voucher code"),
        VoucherCode,
        _find_by_code,
        lambda code: (_("Code %(id)s") % {"id": code.pk}, str(code.shelf)),
        secret=True,
    ),
    Finder(lazy("Product"), Product, lambda text: by_name(Product.objects.all(), text)),
    Finder(
        lazy("Price list"),
        PriceList,
        lambda text: by_name(PriceList.objects.all(), text),
        lambda row: (row.name, row.currency),
    ),
    Finder(lazy("Batch"), Batch, _find_batches, _describe_batch),
    Finder(
        lazy("Hold"),
        CodeHold,
        lambda text: by_number(CodeHold.objects.all(), text, HOLD),
        lambda row: (capfirst(_(HOLD) % {"name": row.pk}), row.reason),
    ),
]

BACK_OFFICE = BackOffice(
    gauges=GAUGES,
    checks=CHECKS,
    triggers=[
        "catalogue_batch_keeps_its_codes",
        "catalogue_batch_keeps_its_expiry",
        "catalogue_batch_stays_taken_back",
        "catalogue_code_is_sold_once",
        "catalogue_code_has_a_digest",
        "catalogue_code_keeps_its_content",
        "catalogue_code_keeps_its_expiry",
        "catalogue_code_leaves_with_its_batch",
        "catalogue_codes_are_kept",
        "catalogue_digest_comes_with_its_code",
        "catalogue_digest_leaves_with_its_code",
        "catalogue_expired_code_is_not_sold",
        "catalogue_held_code_is_kept",
        "catalogue_begun_price_is_kept",
        "catalogue_price_entries_are_kept",
        "catalogue_price_entry_is_a_record",
        "catalogue_price_history_is_append_only",
        "catalogue_price_history_is_kept",
        "catalogue_price_is_remembered",
        "catalogue_price_replaces_the_next",
        "catalogue_product_has_a_shelf",
        "catalogue_shelf_stays",
        "catalogue_sold_code_is_kept",
        "catalogue_variation_has_a_shelf",
        "catalogue_void_code_stays_void",
        "catalogue_void_hold_stays_void",
    ],
    constraints=[
        "catalogue_list_of_account",
        "catalogue_shelf_variation_of_product",
        "catalogue_vouchercode_hold_id_f03f8be5_fk_catalogue_codehold_id",
    ],
    counted={"codes": "catalogue_vouchercode", "shelves": "catalogue_shelf"},
    sealed=[
        Sealed(
            kind="codes",
            table="catalogue_vouchercode",
            column="sealed",
            context=Context.VOUCHER_CODE,
            identity=["digest"],
            row=bytes,
            check=gettext_noop("every stored code opens"),
            read=open_code,
        ),
    ],
    personal=[
        Personal(
            "catalogue_batch",
            Whose.STAFF,
            "who imported codes",
            withheld=["imported_by", "supplier", "invoice"],
            kept="everything: the username says who answers for the codes",
        ),
        Personal(
            "catalogue_codehold",
            Whose.STAFF,
            "who held codes, and why",
            withheld=["held_by", "reason"],
            kept="everything: the username says who answers for the codes",
        ),
        Personal(
            "catalogue_shelfpricechange",
            Whose.STAFF,
            "who changed a price",
            withheld=["changed_by", "asked_by"],
            kept="everything: the history of prices is append-only",
        ),
        Personal(
            "catalogue_pricelistentry",
            Whose.STAFF,
            "who agreed a price, and who ended it",
            withheld=["added_by", "ended_by"],
            kept="everything: what a merchant's price was is never deleted",
        ),
    ],
    rights={
        "catalogue_batch": Rights.KEEP,
        "catalogue_category": Rights.CHANGE,
        "catalogue_category_id_seq": Rights.RENUMBER,
        "catalogue_codedigest": Rights.APPEND_AND_EXPIRE,
        "catalogue_codehold": Rights.KEEP,
        "catalogue_codetrace": Rights.CHANGE,
        "catalogue_shelfpricechange": Rights.APPEND_AND_EXPIRE,
        "catalogue_pricelist": Rights.KEEP,
        "catalogue_pricelistentry": Rights.CHANGE,
        "catalogue_product": Rights.CHANGE,
        "catalogue_product_id_seq": Rights.RENUMBER,
        "catalogue_referencelink": Rights.CHANGE,
        "catalogue_shelf": Rights.CHANGE,
        "catalogue_traceprogress": Rights.KEEP,
        "catalogue_variation": Rights.CHANGE,
        "catalogue_variation_id_seq": Rights.RENUMBER,
        "catalogue_vouchercode": Rights.CHANGE,
    },
    staff_rights=[
        StaffRight(
            Section.CATALOGUE,
            lazy("See products, prices and stock"),
            read_access(Category, Product, Variation, Shelf),
            [StaffRole.ADMINISTRATOR, StaffRole.MERCHANT_MANAGER, StaffRole.SUPPORT],
        ),
        StaffRight(
            Section.CATALOGUE,
            lazy("Add, change and delete products and their prices"),
            full_access(Category, Product, Variation, Shelf),
            [StaffRole.STOCK_KEEPER],
        ),
        StaffRight(
            Section.CATALOGUE,
            lazy("See price lists"),
            read_access(PriceList, PriceListEntry),
            [StaffRole.ADMINISTRATOR, StaffRole.MERCHANT_MANAGER, StaffRole.SUPPORT],
        ),
        StaffRight(
            Section.CATALOGUE,
            lazy("Add and change price lists, and end their prices"),
            [
                *read_access(PriceList, PriceListEntry),
                *("catalogue.add_pricelist", "catalogue.change_pricelist"),
                "catalogue.change_pricelistentry",
            ],
            [StaffRole.STOCK_KEEPER],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("Choose the price list of an account"),
            [*read_access(PriceList), "catalogue.assign_pricelist"],
            [StaffRole.MERCHANT_MANAGER],
        ),
        StaffRight(
            Section.CATALOGUE,
            lazy("Find codes, and see which order has one, without its text"),
            read_access(VoucherCode),
            [StaffRole.STOCK_KEEPER, StaffRole.SUPPORT],
        ),
        StaffRight(
            Section.CATALOGUE, lazy("Reveal the text of a code"), ["catalogue.reveal_vouchercode"]
        ),
        StaffRight(
            Section.CATALOGUE,
            lazy("Hold and release codes, void those that another person held, and change batches"),
            [*read_access(Batch, CodeHold), "catalogue.change_batch", "catalogue.hold_codes"],
            [StaffRole.STOCK_KEEPER],
        ),
        StaffRight(
            Section.CATALOGUE,
            lazy("See merchants' references"),
            read_access(ReferenceLink),
            [StaffRole.SUPPORT],
        ),
        StaffRight(
            Section.CATALOGUE,
            lazy("Link and unlink merchants' references"),
            full_access(ReferenceLink),
            [StaffRole.MERCHANT_MANAGER, StaffRole.STOCK_KEEPER],
        ),
    ],
    parts={
        "catalogue.product": lambda pk: {
            "catalogue.shelf": ids_of(Shelf.objects.filter(product=pk)),
            "catalogue.variation": ids_of(Variation.objects.filter(product=pk)),
            "catalogue.pricelistentry": newest_entries(
                Q(product=pk) | Q(shelf__in=list(Shelf.objects.filter(product=pk)))
            ),
        },
        "catalogue.shelf": lambda pk: {
            "catalogue.pricelistentry": newest_entries(
                Q(shelf=pk) | Q(product__in=list(Product.objects.filter(shelves=pk)))
            ),
        },
        # A released code no longer belongs to its hold.
        "catalogue.batch": lambda pk: {"catalogue.codehold": ids_of(holds_of_batch(pk))},
        "catalogue.pricelist": lambda pk: {
            "catalogue.pricelistentry": ids_of(PriceListEntry.objects.filter(price_list=pk)),
        },
        "accounts.account": lambda pk: {
            "catalogue.referencelink": ids_of(ReferenceLink.objects.filter(account=pk)),
        },
    },
    seen_with={
        **dict.fromkeys(
            (AuditAction.CODES_HELD, AuditAction.CODES_RELEASED, AuditAction.CODES_VOIDED), CodeHold
        ),
        AuditAction.IMPORT_TAKEN_BACK: Batch,
        AuditAction.REFERENCE_LINKED: ReferenceLink,
        AuditAction.REFERENCE_UNLINKED: ReferenceLink,
    },
    finders=FINDERS,
    menu=[
        MenuEntry(Section.CATALOGUE, lazy("Products"), Product, "redeem"),
        MenuEntry(Section.CATALOGUE, lazy("Stock levels"), Shelf, "inventory_2"),
        MenuEntry(Section.CATALOGUE, lazy("Price lists"), PriceList, "payments"),
        MenuEntry(Section.CODES, lazy("Batches"), Batch, "pallet"),
        MenuEntry(Section.CODES, lazy("Held codes"), CodeHold, "lock"),
        MenuEntry(Section.CODES, lazy("Prices in lists"), PriceListEntry, "sell"),
        MenuEntry(Section.SETTINGS, lazy("Categories"), Category, "category"),
        MenuEntry(Section.CODES, lazy("Voucher codes"), VoucherCode, "password"),
        MenuEntry(Section.CODES, lazy("Product references"), ReferenceLink, "link"),
    ],
)
