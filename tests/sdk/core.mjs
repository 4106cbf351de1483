// Decides a list of events with the core of the TypeScript library, for a comparison.
import { readFileSync } from "node:fs";

import { decide, RULES } from "../../sdk/typescript/dist/esm/index.js";

const cases = JSON.parse(readFileSync(0, "utf8"));
const all = cases.map(({ doubt, chance, events }) => {
    const lateUntil = doubt ? 40 : 0;
    let state = { started: 0, keyEnds: RULES.keyLifetime, doubt, lateUntil, sent: 0, tries: 0 };
    let now = 0;
    const actions = [];
    for (const event of [{ kind: "begin" }, ...events]) {
        const [next, action] = decide(state, event, { now, chance, rules: RULES });
        state = next;
        actions.push([action.kind, action.after ?? null, action.reference ?? null, state.doubt]);
        if (action.after === undefined) break;
        now += action.after;
    }
    return actions;
});
console.log(JSON.stringify(all));
