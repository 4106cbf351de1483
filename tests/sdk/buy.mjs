// What tests do with the TypeScript library. Reads {baseUrl, apiKey, steps} and prints the results.
// `entries` are in its journal from the start. With `ownFetch`, the client gets one that notes paths.
import { readFileSync } from "node:fs";
import { inspect } from "node:util";

import { advice, Client, MemoryJournal } from "../../sdk/typescript/dist/esm/index.js";

const { baseUrl, apiKey, rules, steps, entries = [], ownFetch } = JSON.parse(readFileSync(0, "utf8"));
const journal = new MemoryJournal();
for (const entry of entries) await journal.write(entry);
const logged = [];
const log = (event) => logged.push(event);
const fetched = [];
const fetch = (address, options) => {
    fetched.push(new URL(address).pathname);
    return globalThis.fetch(address, options);
};
let client;
try {
    client = new Client({ baseUrl, apiKey, journal, rules, log, ...(ownFetch ? { fetch } : {}) });
} catch (error) {
    console.log(JSON.stringify([{ result: { thrown: error.message } }]));
    process.exit(0);
}
const results = [];
for (const [method, ...parameters] of steps) {
    let result;
    if (method === "watch") {
        result = [];
        try {
            for await (const order of client.watch(...parameters)) result.push(order.reference);
        } catch (error) {
            result.push(error.name);
        }
    } else if (method === "twice") {
        result = await Promise.all([client.buy(...parameters), client.buy(...parameters)]);
    } else if (method === "aborted") {
        const controller = new AbortController();
        setTimeout(() => controller.abort(), 300);
        result = await client.buy(...parameters, { signal: controller.signal });
    } else if (method === "log") {
        result = logged;
    } else if (method === "fetched") {
        result = fetched;
    } else if (method === "open") {
        result = (await journal.openEntries()).map((entry) => entry.orderNumber);
    } else {
        result = await client[method](...parameters).catch((error) => ({
            thrown: error.name,
            code: error.error?.code,
            last: error.last,
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
