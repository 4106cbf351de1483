// Writes purchases in transactions of a shop. Reads {baseUrl, apiKey, database, purchase} and prints
// what `complete` says before and after the end of each transaction.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { Client, PostgresJournal } from "../../sdk/typescript/dist/esm/index.js";

const require = createRequire(new URL("../../sdk/typescript/package.json", import.meta.url));
const { baseUrl, apiKey, database, purchase } = JSON.parse(readFileSync(0, "utf8"));
const pool = new (require("pg").Pool)({ connectionString: database });
const journal = new PostgresJournal(pool);
await journal.createTable();
const client = new Client({ baseUrl, apiKey, journal });
const complete = (number) =>
    client.complete(number).then(
        (outcome) => outcome.order?.reference ?? outcome.kind,
        (error) => error.constructor.name,
    );
const results = [];
const shop = await pool.connect();
for (const [number, end] of [["1", "COMMIT"], ["2", "ROLLBACK"]]) {
    await shop.query("BEGIN");
    await client.prepare(number, purchase, new PostgresJournal(shop));
    results.push(await complete(number));
    await shop.query(end);
    results.push(await complete(number));
}
shop.release();
await pool.end();
console.log(JSON.stringify(results));
