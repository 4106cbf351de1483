// Asks the pace of the TypeScript library, for a comparison.
import { readFileSync } from "node:fs";

import { Pace } from "../../sdk/typescript/dist/esm/pace.js";

const all = JSON.parse(readFileSync(0, "utf8")).map(({ limit, asks }) => {
    const pace = new Pace();
    pace.limit = limit ?? undefined;
    return asks.map(({ token, isPurchase, now, block }) => {
        if (block !== null) pace.block(block);
        return pace.ask(token, isPurchase, now);
    });
});
console.log(JSON.stringify(all));
