"""The report of the laboratory: docs/long-history.md."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

from labs.bench.machine import describe_machine

MOST_ROWS = 10_000  # that one statement of a page reads
SLOWER = 1.5  # times the same page with the shortest history
LONGEST = 200  # milliseconds
FILES = ("/file/", ".csv", ".json")  # longer with a longer history

MARGINS = (
    "It adds up the months of the period, and at most 92 days, by thing and batch, because the cost"
    " is that of the batch. They grow with products and the length of the period. Lines by merchant"
    " of at most 92 days, and of any period in a file, grow with accounts, too."
)
NAMES = (
    "A search, a filter that finds few, and the choices of the filter by currency look through all"
    " accounts, clients or people. They grow with merchants, and not with the age of the service."
)
PEOPLE = (
    "It leaves out the members of accounts, so it looks through all people and memberships. They"
    " grow with merchants, and not with the age of the service."
)
FEW_ORDERS = "With a short history PostgreSQL reads all of it, and with a longer one an index."
OF_HOLD = (
    "It counts the codes of the hold. They grow with what was held, and not with the age of the"
    " service."
)
OF_HOLDS = (
    "It counts the codes of each hold, in their index alone. They grow with what was held. A filter"
    " may read all holds."
)
COSTS = (
    "The cost of a shelf is that of its batches with codes to sell. It reads one code of each batch"
    " in each open hold. They grow with what is held, and not with the age of the service."
)
OF_MONTH = (
    "It counts the entries of the month, by kind. They grow with the sales of a month, and not with"
    " the age of the service."
)
# Pages that read more, and why. A key is a path, or a path with the name of its first parameter.
OPEN = (
    "PostgreSQL expects an empty queue, and looks through the small tables of people and products"
    " once for each open top-up."
)
DUE = (
    "It counts the refunds that are due, in their index alone. The worker books them within a"
    " minute; in a long history, thousands wait when it begins."
)
NEWEST = (
    "PostgreSQL expects the newest entries of a large wallet among the newest of all. In a long"
    " history, the refunds of all wallets came last."
)
EXPLAINED = {
    "/admin/accounts/account/": NAMES,
    "/admin/accounts/account/export.csv": NAMES,
    "/admin/accounts/apiclient/": NAMES,
    "/admin/auth/user/": PEOPLE,
    "/admin/merchants/membership/": NAMES,
    "/admin/auth/user/export.csv": PEOPLE,
    "/admin/wallets/wallet/": NAMES,
    "/admin/wallets/wallet/export.csv": NAMES,
    "/admin/wallets/ledgerentry/?q": NAMES,
    "/admin/orders/order/?q": NAMES,
    "/admin/catalogue/codehold/": OF_HOLDS,
    "/admin/catalogue/codehold/export.csv": OF_HOLDS,
    "/admin/catalogue/referencelink/": "A search looks through all references. A filter by product"
    " sorts those of the product by the names of their accounts. They grow with accounts and"
    " products, and not with the age of the service.",
    "/admin/catalogue/shelf/?stock": "It looks through products, variations and categories for each"
    " shelf without codes. They grow with products, and not with the age of the service.",
    "/admin/catalogue/vouchercode/": "It looks through the small tables of shelves, products"
    " and holds once for each of the 50 codes.",
    "/admin/": "It adds up the sales of eight days by account and shelf, and of 60 days by account"
    " and by product for the tables of 30 days. They grow with accounts and products, and not with"
    " the age of the service.",
    "/admin/catalogue/batch/…/change/": "It counts the codes of the batch by their state. They grow"
    " with the size of an import, and not with the age of the service.",
    "/admin/catalogue/codehold/…/release/": OF_HOLD,
    "/admin/catalogue/codehold/…/void/": OF_HOLD,
    "/admin/catalogue/batch/…/hold/": "It counts the codes of the batch in stock. They grow"
    " with the size of an import, and not with the age of the service.",
    "/admin/catalogue/batch/…/recall-file/": "The file has all orders of the batch, by account.",
    "/admin/catalogue/pricelist/…/change/": COSTS,
    "/admin/catalogue/pricelist/…/prices/": COSTS,
    "/admin/catalogue/pricelistentry/?q": "A search by a name that most products share reads the"
    " entries of all of them, current and past. They grow with products, lists and their changes.",
    "/admin/catalogue/pricelistentry/?price_list__id__exact": "PostgreSQL expects the entries of a"
    " list with many among the newest of all. They grow with products, lists and their changes.",
    "/admin/catalogue/pricelistentry/export.csv": "The file has all entries.",
    "/admin/catalogue/product/export.csv": "The file has all products, with the times of their"
    " prices.",
    "/admin/catalogue/product/…/change/": COSTS,
    "/admin/catalogue/product/…/delete/": "It counts held codes, whose index begins with the hold.",
    "/admin/margins/": MARGINS,
    "/admin/margins/file/": MARGINS,
    "/admin/trail/codes/": "It looks through the codes that were revealed in the period, 30 days"
    " unless the reader chooses more. One person reveals at most 20 an hour.",
    "/admin/telegram/announcement/": "A filter counts up to 10,000 rows, and reads what they name.",
    "/admin/topups/fulfilment/": OPEN,
    "/admin/topups/fulfilment/export.csv": OPEN,
    "/admin/topups/fulfilment/glance/": DUE,
    "/admin/topups/fulfilment/dashboard/": DUE,
    "/admin/topups/fulfilment/report/": "It reads the top-ups that ended in the span,"
    " 20,000 at most, and their moves. They grow with the work of a day, and not with the age of"
    " the service.",
    "/admin/wallets/wallet/…/statement/…-…/csv/": OF_MONTH,
    "/admin/wallets/wallet/…/statement/…-…/pdf/": OF_MONTH,
    "/admin/wallets/wallet/…/statement/…-…/xlsx/": OF_MONTH,
    "/merchant/orders/": NEWEST,
    "/merchant/wallet/": NEWEST,
    "/merchant/orders/orders.csv": "No index has products, so a file of one product looks at the"
    " orders of the chosen days, part by part.",
    "/merchant/wallet/signed-statement.json": FEW_ORDERS
    + " It reads the newest leaf of every wallet, and wallets grow with merchants. While there are"
    " few leaves, PostgreSQL reads all of them for each wallet.",
}

HEAD = """# Pages and jobs with a long history

The [laboratory of pages](../labs/README.md) wrote this page. It filled databases with
{sizes} orders of two years and 200 accounts, one of which has a third of all
orders. It opened every page, filter, search and export of both sites in each of them in turn,
{rounds}.

- Milliseconds are those of the fastest opening; "first" is the first opening of all.
- The time of an API request is the median of 100, without a web server, in the best round. One
  request before them is not counted.
- "Rows" and "blocks" (8 kB) are the most that one statement of the page reads.
- "Ratio" is the time divided by the time with {shortest} orders.
- Of a file, two megabytes were read, or all of it with a short history. Files have no target of
  time: a worker builds what takes long, in bounded reads.
- A page is one row, with all its filters and searches: each figure is that of its worst address.
- A "…" stands for a number or a reference.

The machine ({processor}, {memory}) may have had other work (load average
{load}). Times vary with it; rows and blocks do not. PostgreSQL had its default
settings.

The targets: at most {most:,} rows, at most {longest} ms, and at most {slower} times the time with
the shortest history.
"""


@dataclass
class Figures:
    """The times of a page in milliseconds, and the most that one of its statements reads: rows,
    and blocks of 8 kB. Of a job, all blocks that it reads."""

    first: float
    best: float
    rows: int
    blocks: int


Table = dict[str, dict[int, Figures]]


def explanation(name: str) -> str:
    """Why this page may read more than MOST_ROWS; empty if it may not."""
    path = name.partition("?")[0]
    return EXPLAINED.get(name.partition("=")[0]) or EXPLAINED.get(path, "")


def write_report(
    sizes: Sequence[int], rounds: int, requested: Table, opened: Table, jobs: Table
) -> str:
    """The report in Markdown."""
    machine = describe_machine()
    text = HEAD.format(
        sizes=", ".join(f"{size:,}" for size in sizes),
        shortest=f"{sizes[0]:,}",
        rounds="once" if rounds == 1 else f"{rounds} times",
        processor=machine["processor"],
        memory=machine["memory"],
        load=machine["load average before"],
        most=MOST_ROWS,
        longest=LONGEST,
        slower=SLOWER,
    )
    of_staff = {name: one for name, one in opened.items() if "/merchant/" not in name}
    of_merchants = {name: one for name, one in opened.items() if "/merchant/" in name}
    sections = {
        "## Above a target": above_targets(opened),
        "## Requests of the API": table(sizes, requested, rows=False),
        "## Jobs": table(sizes, jobs, rows=False),
        "## Pages of staff": table(sizes, worst(of_staff)),
        "## Pages of merchants": table(sizes, worst(of_merchants)),
    }
    for title, lines in sections.items():
        text += "\n".join(["", title, "", *lines, ""])
    return text


def worst(opened: Table) -> Table:
    """The worst figures of each page: its addresses differ only in what they filter and search."""
    found: Table = {}
    for name, sizes in opened.items():
        of_page = found.setdefault(
            name.removeprefix("POST ").partition(" ")[0].partition("?")[0], {}
        )
        for size, one in sizes.items():
            other = of_page.get(size, one)
            pairs = zip(astuple(one), astuple(other), strict=True)
            of_page[size] = Figures(*(max(pair) for pair in pairs))
    return found


def above_targets(opened: Table) -> Iterator[str]:
    """A line for each page of which an address is above a target with the longest history: its
    most rows, and its longest time."""
    rows: dict[str, int] = {}
    reasons: dict[str, dict[str, None]] = {}  # in order, each once
    times: dict[str, tuple[float, float]] = {}
    for name, sizes in opened.items():
        path = name.partition("?")[0]
        short, long = sizes[min(sizes)], sizes[max(sizes)]
        rows[path] = max(rows.get(path, 0), long.rows)
        if long.rows > MOST_ROWS:
            reasons.setdefault(path, {})[explanation(name)] = None
        is_file = any(word in name for word in FILES)
        if not is_file and long.best > LONGEST and long.best > SLOWER * short.best:
            times[path] = max(times.get(path, (0.0, 0.0)), (long.best, short.best))
    for path, most in rows.items():
        facts = [f"{most:,} rows. {' '.join(reasons[path])}".strip()] if path in reasons else []
        if path in times:
            facts.append("{:.0f} ms after {:.0f} ms.".format(*times[path]))
        if facts:
            yield f"- `{path}`: {' '.join(facts)}"


def table(sizes: Sequence[int], figures: Table, *, rows: bool = True) -> Iterator[str]:
    """The lines of a table: a row for each page or job."""
    names = ("first", "ms", *(("rows",) if rows else ()), "blocks")
    heads: list[str] = []
    for size in sizes:
        heads += [f"{size:,}: {names[0]}", *names[1:], *(() if size == sizes[0] else ("ratio",))]
    yield f"| | {' | '.join(heads)} |"
    yield "|---|" + "---:|" * len(heads)
    for name, of_sizes in figures.items():
        cells = []
        for size in sizes:
            one = of_sizes.get(size)
            values = ["", "", *(("",) if rows else ()), ""]
            if one:
                times = [f"{one.first:,.0f}", f"{one.best:,.0f}"]
                values = [*times, *((f"{one.rows:,}",) if rows else ()), f"{one.blocks:,}"]
            cells += values
            if size != sizes[0]:
                shortest = of_sizes.get(sizes[0])
                cells.append(f"{one.best / shortest.best:.1f}" if one and shortest else "")
        yield f"| `{name}` | {' | '.join(cells)} |"
