"""The report of the laboratory: docs/long-history.md."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labs.bench.machine import describe_machine

MOST_ROWS = 10_000  # that one statement of a page reads
SLOWER = 1.5  # times the same page with the shortest history
LONGEST = 200  # milliseconds

# Pages that read more, by the beginnings of their names, and why.
EXPLAINED = {
    "/admin/catalogue/referencelink/": "It sorts the references by the names of their accounts."
    " They grow with accounts and products, and not with the age of the service.",
    "/admin/catalogue/vouchercode/?shelf": "It looks through the small tables of shelves, products"
    " and holds once for each of the 50 codes.",
    "/admin/?days=30": "It adds up the sales of each account, and of each product, of 60 days."
    " That grows with accounts and products, and not with the age of the service.",
}

HEAD = """# Pages and jobs with a long history

The [laboratory of pages](../labs/README.md) wrote this page. It filled databases with {sizes}
orders of two years and 200 accounts, one of which has a third of all orders. It opened every page,
filter, search and export of both sites in each of them in turn, {rounds} times.

- Milliseconds are those of the fastest opening; "first" is the first opening of all.
- "Rows" and "blocks" (8 kB) are the most that one statement of the page reads.
- "Ratio" is the time divided by the time with {shortest} orders.
- Of a file, two megabytes were read: a file of a whole history is sent in bounded parts.
- A "…" stands for a number or a reference; "(another)" is a second page with the same name.

The machine ({processor}, {memory}) did other work at the same time (load average {load}), so times
vary, and rows and blocks do not. PostgreSQL had its default settings.

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
    return next((why for start, why in EXPLAINED.items() if name.startswith(start)), "")


def write_report(sizes: Sequence[int], rounds: int, opened: Table, jobs: Table) -> str:
    """The report in Markdown."""
    machine = describe_machine()
    text = HEAD.format(
        sizes=" and ".join(f"{size:,}" for size in sizes),
        shortest=f"{sizes[0]:,}",
        rounds=rounds,
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
        "## Jobs": table(sizes, jobs, rows=False),
        "## Pages of staff": table(sizes, of_staff),
        "## Pages of merchants": table(sizes, of_merchants),
    }
    for title, lines in sections.items():
        text += "\n".join(["", title, "", *lines, ""])
    return text


def above_targets(opened: Table) -> Iterator[str]:
    """A line for each page above a target with the longest history."""
    for name, sizes in opened.items():
        short, long = sizes[min(sizes)], sizes[max(sizes)]
        facts = []
        if long.rows > MOST_ROWS:
            facts.append(f"{long.rows:,} rows. {explanation(name)}".strip())
        if long.best > LONGEST and long.best > SLOWER * short.best:
            facts.append(f"{long.best:.0f} ms after {short.best:.0f} ms.")
        if facts:
            yield f"- `{name}`: {' '.join(facts)}"


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
