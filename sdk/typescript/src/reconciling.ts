import { Decimal, parseJson } from "./decimal.js";
import type { Entry, Journal } from "./journal.js";

/** Seconds by which a debit may follow the last attempt, or the shop's clock may be wrong. */
const EDGE = 300;
const DAY = 86_400; // seconds

/**
 * What does not agree. `debitsUnknownHere` are debits that no purchase of the journal explains: of
 * another client of the account, of another journal, or of one of the `openPurchases`, which are
 * those of the same time.
 * `purchasesAtTheEdge` are no differences: the day before or the day after may have their debits.
 */
export interface Reconciliation {
    readonly debitsUnknownHere: readonly string[];
    readonly purchasesWithoutDebit: readonly string[];
    readonly debitedTwice: readonly string[];
    readonly otherAmounts: readonly string[];
    readonly openPurchases: readonly string[];
    readonly purchasesAtTheEdge: readonly string[];
    readonly isClean: boolean;
}

/** The first and the last day of a statement, in UTC, such as 2026-10-31. */
export interface Period {
    readonly since: string;
    readonly until: string;
}

interface Line {
    readonly time: string;
    readonly kind: string;
    readonly amount: Decimal;
    readonly reference: string;
    readonly key: string;
}

/**
 * Compares the journal with the text of a statement, as CSV or JSON.
 *
 * `since` and `until` are the first and the last day of the statement, as in its address. These are
 * days in UTC if the statement was downloaded with a key for books, or by a member whose time zone is
 * UTC: use no other. A purchase that was first written on these days needs a debit, even if the
 * statement is empty. Without a period, only purchases between the first and the last entry need one.
 *
 * The journal does not store when a purchase was debited. It was between its first write and its
 * last attempt, with five minutes on each side. If this time crosses the beginning or the end of the
 * period, the purchase is at the edge. Each day, compare the last two days: then each purchase is
 * inside at least one comparison.
 *
 * Download the statement after the day `until`. Throws RangeError if this day is not over or is before
 * `since`, or if only one of the two is given.
 */
export async function reconcile(
    statement: string,
    journal: Journal,
    period?: Period,
): Promise<Reconciliation> {
    const [begins, ends] = bounds(period);
    const lines = linesOf(statement);
    const times = lines.map((line) => Date.parse(line.time) / 1000);
    const first = begins ?? times.reduce((least, time) => Math.min(least, time), Infinity);
    const last = ends ?? times.reduce((most, time) => Math.max(most, time), -Infinity);
    const debits = new Map<string, Line[]>();
    for (const line of lines.filter(({ kind }) => kind === "purchase")) {
        debits.set(line.reference, [...(debits.get(line.reference) ?? []), line]);
    }
    const bought = await journal.boughtEntries();
    const known = new Map(bought.map((entry) => [entry.reference ?? "", entry]));
    const missing = [...known].filter(
        ([name, { openedAt }]) => !debits.has(name) && first <= openedAt && openedAt <= last,
    );
    const isAtTheEdge = (entry: Entry): boolean => reachesOver(entry, begins, ends);
    const result = {
        debitsUnknownHere: [...debits.keys()].filter((name) => !known.has(name)),
        purchasesWithoutDebit: missing
            .filter(([, entry]) => !isAtTheEdge(entry))
            .map(([name]) => name),
        debitedTwice: [...debits].filter(([, same]) => same.length > 1).map(([name]) => name),
        otherAmounts: [...debits]
            .filter(([name, [line]]) => {
                const total = known.get(name)?.total;
                return total !== undefined && !line?.amount.times(-1).equals(Decimal.from(total));
            })
            .map(([name]) => name),
        openPurchases: (await journal.openEntries())
            .filter(
                ({ openedAt, sentAt = openedAt }) =>
                    begins === undefined ||
                    ends === undefined ||
                    (openedAt - EDGE < ends && sentAt + EDGE > begins),
            )
            .map((entry) => entry.orderNumber),
    };
    return {
        ...result,
        purchasesAtTheEdge: missing
            .filter(([, entry]) => isAtTheEdge(entry))
            .map(([name]) => name),
        isClean: Object.values(result).every((names) => names.length === 0),
    };
}

/**
 * References and amounts of the debits with the key of the purchase, of any client. Throws
 * RangeError if the period is not over, or does not contain every attempt.
 */
export function debitsOfKey(
    statement: string,
    entry: Entry,
    period: Period,
): { reference: string; total: string }[] {
    const [begins, ends] = bounds(period);
    if (reachesOver(entry, begins, ends)) {
        const days = `${period.since} to ${period.until}`;
        throw new RangeError(`${days} does not contain every attempt of the purchase`);
    }
    return linesOf(statement)
        .filter((line) => line.kind === "purchase" && line.key === entry.key)
        .map(({ reference, amount }) => ({ reference, total: amount.times(-1).toString() }));
}

/** Whether an attempt may have been before the period or after it. */
function reachesOver({ openedAt, sentAt = openedAt }: Entry, begins?: number, ends?: number): boolean {
    return (
        (begins !== undefined && openedAt - EDGE < begins) ||
        (ends !== undefined && sentAt + EDGE >= ends)
    );
}

function linesOf(statement: string): Line[] {
    return statement.trimStart().startsWith("{") ? fromJson(statement) : fromCsv(statement);
}

/** The Unix times at which a period begins and ends. */
function bounds({ since, until }: Partial<Period> = {}): [number?, number?] {
    if (since === undefined && until === undefined) return [];
    if (since === undefined || until === undefined) {
        throw new RangeError("Give both since and until, or neither");
    }
    const begins = midnight(since);
    const ends = midnight(until) + DAY;
    if (ends > Date.now() / 1000) {
        throw new RangeError(`${until} is not over: choose an earlier day`);
    }
    if (begins >= ends) throw new RangeError(`${until} is before ${since}`);
    return [begins, ends];
}

/** The Unix time at which a day begins. */
function midnight(day: string): number {
    const time = new Date(`${day}T00:00:00Z`);
    if (Number.isNaN(time.getTime()) || !time.toISOString().startsWith(`${day}T`)) {
        throw new RangeError(`Not a day such as 2026-10-31: ${day}`);
    }
    return time.getTime() / 1000;
}

function fromJson(text: string): Line[] {
    const { entries } = parseJson(text) as { entries: Record<string, unknown>[] };
    return entries.map((entry) => ({
        time: String(entry.time),
        kind: String(entry.kind),
        amount: entry.amount as Decimal,
        reference: String(entry.order_reference ?? ""),
        key: String(entry.idempotency_key ?? ""),
    }));
}

function fromCsv(text: string): Line[] {
    const [names = [], ...rows] = cells(text.replace(/^\uFEFF/, ""));
    return rows.map((row) => {
        const value = (name: string): string => row[names.indexOf(name)] ?? "";
        return {
            time: value("time"),
            kind: value("kind"),
            amount: Decimal.from(value("amount")),
            reference: value("order_reference"),
            key: value("idempotency_key"),
        };
    });
}

/** The rows of a CSV file. A cell in quotation marks may contain commas and line breaks. */
function cells(text: string): string[][] {
    const rows: string[][] = [[]];
    for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
        rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
        if (end !== ",") rows.push([]);
    }
    return rows.filter((row) => row.length > 1);
}
