import { Decimal, parseJson } from "./decimal.js";
import type { Journal } from "./journal.js";

/**
 * What does not agree. `debitsUnknownHere` are debits that no purchase of the journal explains: of
 * another client of the account, of another journal, or of one of the `openPurchases`.
 */
export interface Reconciliation {
    readonly debitsUnknownHere: readonly string[];
    readonly purchasesWithoutDebit: readonly string[];
    readonly debitedTwice: readonly string[];
    readonly otherAmounts: readonly string[];
    readonly openPurchases: readonly string[];
    readonly isClean: boolean;
}

interface Line {
    readonly time: string;
    readonly kind: string;
    readonly amount: Decimal;
    readonly reference: string;
}

/** `statement` is the text of a statement, as CSV or JSON. */
export async function reconcile(statement: string, journal: Journal): Promise<Reconciliation> {
    const lines = statement.trimStart().startsWith("{") ? fromJson(statement) : fromCsv(statement);
    const times = lines.map((line) => Date.parse(line.time) / 1000);
    const [first, last] = [Math.min(...times), Math.max(...times)];
    const debits = new Map<string, Line[]>();
    for (const line of lines.filter(({ kind }) => kind === "purchase")) {
        debits.set(line.reference, [...(debits.get(line.reference) ?? []), line]);
    }
    const bought = await journal.boughtEntries();
    const known = new Map(bought.map((entry) => [entry.reference ?? "", entry]));
    const result = {
        debitsUnknownHere: [...debits.keys()].filter((name) => !known.has(name)),
        purchasesWithoutDebit: [...known]
            .filter(([name, { openedAt }]) => !debits.has(name) && openedAt >= first && openedAt <= last)
            .map(([name]) => name),
        debitedTwice: [...debits].filter(([, same]) => same.length > 1).map(([name]) => name),
        otherAmounts: [...debits]
            .filter(([name, [line]]) => {
                const total = known.get(name)?.total;
                return total !== undefined && !line?.amount.times(-1).equals(Decimal.from(total));
            })
            .map(([name]) => name),
        openPurchases: (await journal.openEntries()).map((entry) => entry.orderNumber),
    };
    return { ...result, isClean: Object.values(result).every((names) => names.length === 0) };
}

function fromJson(text: string): Line[] {
    const { entries } = parseJson(text) as { entries: Record<string, unknown>[] };
    return entries.map((entry) => ({
        time: String(entry.time),
        kind: String(entry.kind),
        amount: entry.amount as Decimal,
        reference: String(entry.order_reference ?? ""),
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
