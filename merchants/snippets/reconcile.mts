// Compares your purchases with the statement. It needs only Node 18+ and the
// compiler tsc. Node 22.18+ also runs reconcile.mts as it is.
//
//   npm install typescript @types/node
//   npx tsc --target es2022 --module nodenext reconcile.mts
//   node reconcile.mjs purchases 2026-10-01 2026-10-31
//
// The file order-1042.json in the folder purchases is what the program that
// buys printed for the idempotency key order-1042. It is empty while the
// outcome is unknown. The days are in UTC.
// Exit codes:
//   0  no difference
//   1  each difference is printed
//   2  there is no comparison; the reason is printed
//
// Amounts become binary floats in JSON.parse. That is enough to compare them,
// not to calculate with them.

import { readdirSync, readFileSync } from "node:fs";

const { VOUCHER_SITE: site, VOUCHER_BOOK_KEY: bookKey } = process.env;

interface Order {
    reference: string;
    total_price?: number | string; // missing if the purchase was refused
    created_at?: string | null;
}
interface Debit {
    order_reference: string;
    amount: number;
    idempotency_key: string | null;
    client: string | null;
}

/** The orders by idempotency key. Undefined means that the outcome is unknown. */
function readPurchases(folder: string): Map<string, Order | undefined> {
    const purchases = new Map<string, Order | undefined>();
    for (const file of readdirSync(folder).sort()) {
        if (!file.endsWith(".json")) continue;
        const text = readFileSync(`${folder}/${file}`, "utf8").trim();
        const answer = text ? readAnswer(text, file) : undefined;
        purchases.set(file.slice(0, -".json".length), answer);
    }
    return purchases;
}

/** The order, or the error of a refusal. */
function readAnswer(text: string, file: string): Order {
    try {
        const answer = JSON.parse(text);
        // Some programs print the whole response.
        const content = answer.data ?? answer.error ?? answer;
        if ((content.total_price ?? content.code) != null) return content;
    } catch {
        // It is no JSON.
    }
    throw new Error(`${file} contains no response of the service`);
}

/** The debits of the account's statement, oldest first. */
async function readDebits(first: string, last: string): Promise<Debit[]> {
    const path = `/merchant/wallet/statement.json?since=${first}&until=${last}&kind=purchase`;
    const response = await fetch(site + path, {
        headers: { Authorization: `Bearer ${bookKey}` },
        redirect: "manual", // the key must not go elsewhere
        signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`HTTP status ${response.status}: ${text}`);
    const { entries } = JSON.parse(text);
    for (const { amount } of entries) {
        if (typeof amount !== "number") throw new Error(`Not an amount: ${amount}`);
    }
    return entries;
}

/** One line for each difference. */
function* compare(
    purchases: Map<string, Order | undefined>,
    debits: Debit[],
    first: string,
    last: string,
): Generator<string> {
    const byReference = new Map(debits.map((debit) => [debit.order_reference, debit]));
    const known = new Set<string>();
    const refused = new Set<string | null>();
    for (const [key, order] of purchases) {
        if (!order) {
            yield `open: ${key}`;
            continue;
        }
        const { reference, total_price: total } = order;
        if (total === undefined) {
            refused.add(key);
            continue;
        }
        const debit = byReference.get(reference);
        const day = (order.created_at || first).slice(0, 10);
        if (known.has(reference)) {
            yield `one order twice: ${reference}, ${key}`;
        } else if (!debit) {
            // A replacement costs 0 and has no debit.
            if (Number(total) && first <= day && day <= last) yield `no debit: ${reference}, ${key}`;
        } else if (-debit.amount !== Number(total)) {
            yield `another amount: ${reference}, ${key}, ${total} here, ${-debit.amount} debited`;
        }
        known.add(reference);
    }
    const seen = new Set<string>();
    for (const { order_reference: reference, amount, idempotency_key: key, client } of debits) {
        if (seen.has(reference)) {
            yield `debited twice: ${reference}, ${key ?? ""}`;
        } else if (refused.has(key)) {
            yield `bought, not refused: ${reference}, ${key}, ${-amount} debited`;
        } else if (!known.has(reference)) {
            yield `unknown here: ${reference}, ${key ?? ""}, ${client}, ${-amount} debited`;
        }
        seen.add(reference);
    }
}

/** Throws an error if the program was started wrongly. */
function check(programArguments: string[]): void {
    if (programArguments.length !== 3) {
        throw new Error("Usage: reconcile.mjs purchases 2026-10-01 2026-10-31");
    }
    for (const day of programArguments.slice(1)) {
        if (!/^\d{4}-\d\d-\d\d$/.test(day)) {
            throw new Error(`Not a day such as 2026-10-31: ${day}`);
        }
    }
    if (!site) throw new Error("Set VOUCHER_SITE");
    if (!/^[!-~]+$/.test(bookKey ?? "")) {
        // Never print it.
        throw new Error("Set VOUCHER_BOOK_KEY to the key only, without spaces or line ends");
    }
}

try {
    check(process.argv.slice(2));
    const [folder = "", first = "", last = ""] = process.argv.slice(2);
    const purchases = readPurchases(folder);
    const debits = await readDebits(first, last);
    const differences = [...compare(purchases, debits, first, last)];
    for (const line of differences) console.log(line);
    console.log(
        `${purchases.size} purchases, ${debits.length} debits, ${differences.length} differences`,
    );
    process.exitCode = differences.length ? 1 : 0;
} catch (problem) {
    console.error(String(problem));
    process.exitCode = 2;
}
