// A shop that buys through the TypeScript library, and is killed at any statement of its journal.
//
//     node killed_shop.mjs TASK
//
// TASK is the JSON of tests/sdk/kills.py. The first process starts another for each life of the
// shop. A life ends with SIGKILL before, during or after a random statement, or when everything is
// settled. Prints the number of kills.
import { spawnSync } from "node:child_process";
import { createRequire, isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";

import {
    Client,
    MemoryJournal,
    PostgresJournal,
    SqliteJournal,
} from "../../sdk/typescript/dist/esm/index.js";

const RULES = {
    patience: 5,
    firstPause: 0.005,
    longestPause: 0.02,
    crowdPause: 0.02,
    progressPause: 0.1,
};
const PATIENCE = 10_000; // lives

/** Numbers from 0 to 1 that a text decides (xorshift). */
function randomNumbers(text) {
    let state = 2463534242;
    const next = () => {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        return (state >>> 0) / 2 ** 32;
    };
    for (const letter of text) {
        state ^= letter.charCodeAt(0);
        for (let round = 0; round < 4; round++) next();
    }
    return next;
}

/** A database of node:sqlite, or of better-sqlite3 where Node.js has none. */
async function openFile(path) {
    if (isBuiltin("node:sqlite")) return new (await import("node:sqlite")).DatabaseSync(path);
    return new (await import("better-sqlite3")).default(path);
}

/** The journal in a file or in PostgreSQL, around whose statements the process dies. */
async function openJournal(address, perhapsDie) {
    if (address.startsWith("postgresql:")) {
        const require = createRequire(
            new URL("../../sdk/typescript/package.json", import.meta.url),
        );
        const pool = new (require("pg").Pool)({ connectionString: address, max: 1 });
        const journal = new PostgresJournal({
            async query(statement, values) {
                perhapsDie();
                const answer = pool.query(statement, values);
                if (perhapsDie.isNear()) setImmediate(perhapsDie.now); // the statement is sent
                const result = await answer;
                perhapsDie();
                return result;
            },
        });
        await journal.createTable();
        return [journal, () => pool.end()];
    }
    const database = await openFile(address);
    const deadly = (statement, method) => (...values) => {
        perhapsDie();
        const result = statement[method](...values);
        perhapsDie();
        return result;
    };
    const journal = await SqliteJournal.open({
        exec: (statement) => database.exec(statement),
        prepare(text) {
            const statement = database.prepare(text);
            return { all: deadly(statement, "all"), run: deadly(statement, "run") };
        },
    });
    return [journal, () => database.close()];
}

/** The control: it writes a purchase to the database only when it was bought. */
class LateJournal extends MemoryJournal {
    constructor(database) {
        super();
        this.database = database;
    }

    async settleBought(orderNumber, reference, total) {
        await super.settleBought(orderNumber, reference, total);
        await this.database.write(await this.find(orderNumber));
        await this.database.settleBought(orderNumber, reference, total);
    }

    boughtEntries() {
        return this.database.boughtEntries();
    }
}

/** Resumes what the last life left, and buys what is missing. */
async function live(task, life) {
    const chance = randomNumbers(`${task.seed} ${life}`);
    const die = () => process.kill(process.pid, "SIGKILL");
    const perhapsDie = () => chance() < task.death && die();
    perhapsDie.isNear = () => chance() < task.death;
    perhapsDie.now = die;
    const [database, close] = await openJournal(task.journal, perhapsDie);
    const journal = task.late ? new LateJournal(database) : database;
    const client = new Client({
        baseUrl: task.base_url,
        apiKey: task.key,
        journal,
        rules: RULES,
    });
    await client.resume();
    const bought = new Set((await journal.boughtEntries()).map((entry) => entry.orderNumber));
    for (let number = 0; number < task.purchases; number++) {
        const name = `order-${number}`;
        if (bought.has(name)) continue;
        const purchase =
            number % 4 === 0
                ? { system_product_id: task.topup_product, player_id: `player-${number}` }
                : { product_id: task.product, quantity: 1 + (number % 2) };
        let outcome = await client.buy(name, purchase);
        // Only the network refuses.
        while (outcome.kind === "refused") outcome = await client.retry(name);
    }
    while ((await journal.openEntries()).length > 0) await client.resume();
    await close();
}

function main(task) {
    for (let life = 0; life < PATIENCE; life++) {
        const { status, signal } = spawnSync(
            process.execPath,
            [fileURLToPath(import.meta.url), task, String(life)],
            { stdio: ["ignore", "ignore", "inherit"] },
        );
        if (status === 0) return console.log(life);
        if (signal !== "SIGKILL") throw new Error(`the shop failed in life ${life}`);
    }
    throw new Error("the shop never finished");
}

const [task, life] = process.argv.slice(2);
if (life === undefined) main(task);
else await live(JSON.parse(task), life);
