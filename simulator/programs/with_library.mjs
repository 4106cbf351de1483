// A shop that passes the exam: it buys through the TypeScript library, which must be compiled. It
// needs Node.js 22.13 or newer.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";

import { ApiError, Client, SqliteJournal } from "../../sdk/typescript/dist/esm/index.js";

const { EXAM_FOLDER, EXAM_ORDERS, EXAM_RESULTS, VOUCHER_API_KEY, VOUCHER_BASE_URL } = process.env;
// Tests set a shorter second.
const SECOND = Number(process.env.VOUCHER_SECOND ?? "1");
const RESULT = /"order_number":"([^"]+)","outcome":"(?:bought|refused)".*\}$/gm;

function writeResult(outcome) {
    const result = { order_number: outcome.orderNumber, outcome: outcome.kind };
    if (outcome.kind === "bought") {
        result.reference = outcome.order.reference;
        result.total = outcome.order.total_price.toString();
    }
    // The empty line ends a line that a kill has cut.
    appendFileSync(EXAM_RESULTS, `\n${JSON.stringify(result)}\n`);
}

function settledOrders() {
    const text = existsSync(EXAM_RESULTS) ? readFileSync(EXAM_RESULTS, "utf8") : "";
    return new Set([...text.matchAll(RESULT)].map((found) => found[1]));
}

/** Asks until the service tells the limit. It may refuse for a moment. */
async function learnLimit(client) {
    for (;;) {
        try {
            await client.ping();
            return;
        } catch (problem) {
            if (!(problem instanceof ApiError)) throw problem;
            await sleep(1000);
        }
    }
}

const journal = await SqliteJournal.open(new DatabaseSync(`${EXAM_FOLDER}/purchases.db`));
const rules = { attemptLifetime: 90 * SECOND };
const client = new Client({ baseUrl: VOUCHER_BASE_URL, apiKey: VOUCHER_API_KEY, journal, rules });
await learnLimit(client);
for (const outcome of await client.resume()) writeResult(outcome);
const orders = readFileSync(EXAM_ORDERS, "utf8").trim().split("\n").map((line) => JSON.parse(line));
// A purchase stays open, or its order cannot be read for a moment: buying goes on with both.
for (;;) {
    const settled = settledOrders();
    const missing = orders.filter((order) => !settled.has(order.order_number));
    if (missing.length === 0) break;
    for (const { order_number, body } of missing) writeResult(await client.buy(order_number, body));
    if ((await journal.openEntries()).length > 0) await sleep(1000 * SECOND);
}
