// Waits until top-ups are delivered, or have failed and are refunded. It
// needs only Node 18+ and the compiler tsc. Node 22.18+ also runs wait.mts as
// it is.
//
//   npm install typescript @types/node
//   npx tsc --target es2022 --module nodenext wait.mts
//   node wait.mjs REFERENCE...
//
// The service sends no callbacks, so this program polls. One request reads
// the 100 newest orders; older ones are read one by one, one a second. Keep
// the pause within your rate limit.
// A line says how each top-up ended: REFERENCE completed, REFERENCE refunded
// or REFERENCE not refunded. For the last one, contact support before you buy
// it again.
// Exit codes:
//   0  each top-up was delivered, or it failed and was refunded
//   1  one was not refunded, or cannot be read; a line says why
//   64 started wrongly, and this run sent nothing; the reason is printed
//
// Run it only on a server: an API key must never reach a browser.

const { VOUCHER_BASE_URL: baseUrl, VOUCHER_API_KEY: apiKey } = process.env;
const pause = 1000 * seconds("VOUCHER_PAUSE_SECONDS", "30");
// How long it waits for a refund, which normally takes seconds, and how long
// it goes on while no order can be read.
const patience = 1000 * seconds("VOUCHER_PATIENCE_SECONDS", "900");

/** Returns the number in a variable, or 0 if it is not a positive number. */
function seconds(name: string, usual: string): number {
    const text = process.env[name] || usual;
    return /^[0-9]{1,6}(\.[0-9]+)?$/.test(text) ? Number(text) : 0;
}

const sleep = (milliseconds: number) =>
    new Promise((resolve) => setTimeout(resolve, milliseconds));

interface Order {
    reference: string;
    status: string;
    refunded?: boolean;
}
interface Page {
    items: Order[];
}
interface Failure {
    code?: unknown;
    retry_after_seconds?: number;
}

/** Waiting does not help. */
class Hopeless extends Error {}

let unreadableSince: number | undefined; // when a request failed, if no order was read since

/** Yields each reference with how its top-up ended. */
async function* wait(references: string[]): AsyncGenerator<[string, string]> {
    const waiting = new Set(references);
    const failed = new Map<string, number>(); // when each had failed
    for (;;) {
        for await (const order of current([...waiting])) {
            const { reference, status } = order;
            if (status !== "completed" && status !== "failed") continue;
            const since = failed.get(reference) ?? performance.now();
            failed.set(reference, since);
            let end = "completed";
            if (status === "failed") {
                // `refunded` is true once the money is back in the wallet.
                end = order.refunded ? "refunded" : "not refunded";
                const isOver = performance.now() - since >= patience;
                if (!order.refunded && !isOver) continue;
            }
            waiting.delete(reference);
            yield [reference, end];
        }
        if (waiting.size === 0) return;
        await sleep(pause);
    }
}

/** Yields the orders that can be read now. */
async function* current(references: string[]): AsyncGenerator<Order> {
    let newest: Order[] = [];
    if (references.length > 1) {
        const page = await read<Page>("/orders?per_page=100");
        if (!page) return;
        newest = page.items;
    }
    let gap = 0;
    for (const reference of references) {
        let order = newest.find((each) => each.reference === reference);
        if (!order) {
            await sleep(gap);
            gap = 1000;
            order = await read<Order>(`/orders/${reference}`);
        }
        if (!order) continue;
        unreadableSince = undefined;
        yield order;
    }
}

/**
 * Returns the service's data, or nothing if it cannot be read now. Waits and
 * repeats the request after 429. Throws Hopeless if the service says that
 * waiting does not help, such as for an unknown reference. An answer of a
 * proxy does not say that.
 */
async function read<Data>(path: string): Promise<Data | undefined> {
    for (;;) {
        let status = 0;
        let retryAfter = 0; // a 429 of a proxy does not say how long to wait
        try {
            const response = await fetch(baseUrl + path, {
                headers: { Authorization: `Bearer ${apiKey}`, Accept: "application/json" },
                redirect: "manual", // the key must not go elsewhere
                signal: AbortSignal.timeout(35_000),
            });
            status = response.status;
            const answer: unknown = await response.json();
            // The service's own JSON is {success: true, data} or
            // {success: false, error: {code}}.
            const { success, data, error } = (answer ?? {}) as Record<string, unknown>;
            if (status === 200 && success === true && data instanceof Object) return data as Data;
            const { code, retry_after_seconds } = (error ?? {}) as Failure;
            if (success === false && typeof code === "string") {
                if (status >= 400 && status < 500 && status !== 429) {
                    throw new Hopeless(`${path} cannot be read: ${code}`);
                }
                retryAfter = 1000 * (retry_after_seconds ?? 0);
            }
        } catch (problem) {
            if (problem instanceof Hopeless) throw problem;
            // No response, an incomplete response, or no JSON.
        }
        unreadableSince ??= performance.now();
        if (performance.now() - unreadableSince >= patience) {
            throw new Hopeless("Gave up, because no order could be read: check VOUCHER_BASE_URL");
        }
        console.error(`HTTP status ${status || "unknown"}: trying again`);
        if (status !== 429) return undefined;
        await sleep(Math.max(pause, retryAfter));
    }
}

/** Returns what is wrong with the start of the program, if anything is. */
function problem(references: string[]): string | undefined {
    if (!baseUrl) return "Set VOUCHER_BASE_URL";
    if (!/^[!-~]+$/.test(apiKey ?? "")) {
        // Never print it.
        return "Set VOUCHER_API_KEY to the key only, without spaces or line ends";
    }
    if (references.length === 0 || !references.every((each) => /^[0-9A-Za-z_-]+$/.test(each))) {
        return "Usage: wait.mjs REFERENCE...";
    }
    if (!pause) return "Set VOUCHER_PAUSE_SECONDS to a number of seconds";
    if (!patience) return "Set VOUCHER_PATIENCE_SECONDS to a number of seconds";
    return undefined;
}

const references = process.argv.slice(2);
const wrong = problem(references);
if (wrong) {
    console.error(wrong);
    process.exit(64);
}
try {
    for await (const [reference, end] of wait(references)) {
        console.log(`${reference} ${end}`);
        if (end === "not refunded") process.exitCode = 1;
    }
} catch (error) {
    console.error(error instanceof Hopeless ? error.message : error);
    process.exitCode = 1;
}
