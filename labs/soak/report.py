"""The course of a run: latency, processor time and memory, and whether they stay flat.

python -m labs.soak.report RESULT.json docs/soak.md    writes the page
"""

import json
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labs.soak.watch import Happened, Watch, percentile

SLICES = 12
RECOVERY = 5.0  # seconds after a fault that are not quiet yet
# How much more the last third may need than the first, and the last quarter than the second.
FLAT = {"p50": 1.5, "p99": 2.0, "processor ms per purchase": 1.15}
FLAT_MEMORY = 1.10
KINDS_JUDGED = ("witness web", "witness worker")
SERVICE = ("web", "witness web", "postgres")  # whose processor time a purchase needs


def figures(watch: Watch, happened: Sequence[Happened]) -> dict[str, Any]:
    """The faults, the slices, the memory over time, and the verdict on both."""
    slices = quiet_slices(watch, happened)
    memory = memory_quarters(watch)
    seconds = watch.reports[-1]["time"] - watch.reports[0]["time"]
    requests: Counter[str] = Counter()
    for report in watch.reports:
        requests.update(report["requests"])
    return {
        "seconds": round(seconds),
        "purchases_per_second": round(sum(watch.reports[-1]["bought"].values()) / seconds, 1),
        "faults": dict(Counter(fault.kind for fault in happened)),
        "requests": dict(requests),
        "flat": {**flat_slices(slices), **flat_memory(memory)},
        "memory_mb": memory,
        "slices": slices,
    }


def quiet_slices(watch: Watch, happened: Sequence[Happened]) -> list[dict[str, float]]:
    """Twelve slices of the run, each from its seconds without a fault."""
    begin, end = watch.reports[0]["time"], watch.reports[-1]["time"]
    length = (end - begin) / SLICES or 1.0
    slices = []
    for number in range(SLICES):
        first, last = begin + number * length, begin + (number + 1) * length
        times: Counter[int] = Counter()
        quiet = 0
        for report in watch.reports:
            if first <= report["time"] < last and not _disturbed(report["time"], happened):
                quiet += 1
                times.update({int(b): n for b, n in report["milliseconds"].items()})
        if times:
            slices.append(
                {
                    "minute": round((first - begin) / 60, 1),
                    "quiet_seconds": quiet,
                    "p50": round(percentile(times, 50), 1),
                    "p99": round(percentile(times, 99), 1),
                    "purchases_per_second": round(times.total() / quiet, 1),
                    "processor ms per purchase": round(_processor(watch, first, last), 3),
                }
            )
    return slices


def flat_slices(slices: Sequence[dict[str, float]]) -> dict[str, dict[str, Any]]:
    """The median of the last third of the slices, divided by that of the first third."""
    third = max(1, len(slices) // 3)
    found = {}
    for name, limit in FLAT.items():
        values = [each[name] for each in slices]
        if not values:
            continue
        ratio = statistics.median(values[-third:]) / (statistics.median(values[:third]) or 1)
        found[name] = {"ratio": round(ratio, 2), "limit": limit, "flat": ratio <= limit}
    return found


def memory_quarters(watch: Watch) -> dict[str, list[float]]:
    """The median memory of each kind in each quarter of the run, in MB."""
    begin = watch.samples[0]["time"]
    length = (watch.samples[-1]["time"] - begin) / 4 or 1.0
    quarters: dict[str, list[list[float]]] = {}
    for sample in watch.samples:
        quarter = min(3, int((sample["time"] - begin) / length))
        for kind, size in sample["memory"].items():
            quarters.setdefault(kind, [[], [], [], []])[quarter].append(size)
    return {
        kind: [round(statistics.median(sizes), 1) if sizes else 0.0 for sizes in each]
        for kind, each in quarters.items()
    }


def flat_memory(quarters: dict[str, list[float]]) -> dict[str, dict[str, Any]]:
    """The last quarter divided by the second, for the processes that nobody kills."""
    found = {}
    for kind in KINDS_JUDGED:
        if kind in quarters and quarters[kind][1]:
            ratio = quarters[kind][3] / quarters[kind][1]
            found[f"memory of {kind}"] = {
                "ratio": round(ratio, 2),
                "limit": FLAT_MEMORY,
                "flat": ratio <= FLAT_MEMORY,
            }
    return found


def _disturbed(second: float, happened: Sequence[Happened]) -> bool:
    """Whether a fault may have affected the second before this time."""
    return any(
        fault.began <= second and second - 1 <= fault.healed + RECOVERY for fault in happened
    )


def _processor(watch: Watch, first: float, last: float) -> float:
    """Milliseconds of processor time that web processes and PostgreSQL spent for one purchase."""
    spent = [sample for sample in watch.samples if first <= sample["time"] < last]
    bought = [report for report in watch.reports if first <= report["time"] < last]
    if len(spent) < 2 or len(bought) < 2:
        return 0.0
    seconds = sum(
        spent[-1]["spent"].get(kind, 0) - spent[0]["spent"].get(kind, 0) for kind in SERVICE
    )
    number = sum(bought[-1]["bought"].values()) - sum(bought[0]["bought"].values())
    return 1000.0 * float(seconds) / max(1, int(number))


def page(result: dict[str, Any]) -> str:
    """The report as Markdown."""
    rows = [
        ("Began", result["began"]),
        ("Length", f"{result['seconds'] / 60:.0f} minutes"),
        ("Seed", result["seed"]),
        ("Machine", f"{result['machine']['processor']}, {result['machine']['memory']}"),
        ("Voucher orders", f"{result['voucher_orders']:,}, with {result['codes_given']:,} codes"),
        ("Top-up orders", f"{result['top_up_orders']:,}, of which {result['refunds']:,} refunded"),
        ("Debits", f"{result['debits']:,}"),
        ("Purchases per second", result["purchases_per_second"]),
        ("Requests", f"{sum(result['requests'].values()):,}"),
        ("Faults", f"{sum(result['faults'].values()):,}"),
        ("Problems", "; ".join(result["problems"]) or "none"),
    ]
    tables = {
        ("", ""): rows,
        ("fault", "times"): sorted(result["faults"].items()),
        ("answer", "requests"): sorted(result["requests"].items()),
        ("how a key ended", "keys"): sorted(result["outcomes"].items()),
        ("requests for one key", "keys"): sorted(
            ((int(n), keys) for n, keys in result["tries"].items())
        )[:10],
    }
    text = [HEAD]
    for (left, right), lines in tables.items():
        text.append(f"| {left} | {right} |\n|---|---|")
        text += [f"| {name} | {_value_text(value)} |" for name, value in lines]
        text.append("")
    text += [FLATNESS, "| | last ÷ first | at most | |\n|---|---|---|---|"]
    for name, each in result["flat"].items():
        verdict = "flat" if each["flat"] else "**grows**"
        text.append(f"| {name} | {each['ratio']} | {each['limit']} | {verdict} |")
    names = list(result["slices"][0]) if result["slices"] else []
    text += ["", "| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    text += [
        "| " + " | ".join(str(each[name]) for name in names) + " |" for each in result["slices"]
    ]
    text.append("")
    return "\n".join(text)


def _value_text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)


HEAD = """# A long run with faults

`make soak` runs the whole service on one machine, buys without a pause, and breaks a part of it
every few seconds ([guarantees.md](guarantees.md#a-long-run-with-faults)). This page is the report
of the last long run; `python -m labs.soak.report` wrote it.
"""
FLATNESS = """## Flat

Latency is of purchases that succeeded at the first try, in seconds without a fault and more than
five seconds after one. The last third of the run is compared with the first. Processor time is
that of web processes and PostgreSQL together. Memory is what a process shares with no other; the
last quarter is compared with the second, for the host whose processes are never killed.
"""


def main(result_file: str, page_file: str) -> None:
    result = json.loads(Path(result_file).read_text())
    Path(page_file).write_text(page(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
