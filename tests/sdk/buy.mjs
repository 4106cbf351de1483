// What tests do with the TypeScript library. Reads {baseUrl, apiKey, steps} and prints the results.
// `entries` are in its journal from the start.
import { readFileSync } from "node:fs";
import { inspect } from "node:util";

import { advice, Client, MemoryJournal } from "../../sdk/typescript/dist/esm/index.js";

const { baseUrl, apiKey, rules, steps, entries = [] } = JSON.parse(readFileSync(0, "utf8"));
const journal = new MemoryJournal();
for (const entry of entries) await journal.write(entry);
const client = new Client({ baseUrl, apiKey, journal, rules });
const results = [];
for (const [method, ...parameters] of steps) {
    let result;
    if (method === "watch") {
        result = [];
        for await (const order of client.watch(...parameters)) result.push(order.reference);
    } else if (method === "twice") {
        result = await Promise.all([client.buy(...parameters), client.buy(...parameters)]);
    } else if (method === "open") {
        result = (await journal.openEntries()).map((entry) => entry.orderNumber);
    } else {
        result = await client[method](...parameters).catch((error) => ({
            thrown: error.constructor.name,
            code: error.error?.code,
        }));
    }
    results.push({
        result,
        printed: inspect(result, { depth: 9, showHidden: true }) + inspect(client),
        codes: result?.order?.codes?.map((each) => each.code),
        advice: result?.error && advice(result.error),
    });
}
console.log(JSON.stringify(results));
