// Buys once, however often it must retry. It needs only Node 18+ and the
// compiler tsc. Node 22.18+ also runs buy.mts as it is.
//
//   npm install typescript @types/node
//   npx tsc --target es2022 --module nodenext buy.mts
//   node buy.mjs '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY
//
// Make the idempotency key from your own order number, such as order-1042.
// Use a new key for each purchase, and store it before you start.
// Exit codes:
//   0  bought; the order is printed
//   1  refused, and this run charged nothing; the error is printed
//   2  the outcome is unknown; start again with the same idempotency key
//   64 started wrongly, and this run sent nothing; the reason is printed
// After 2 or a crash, wait 90 seconds, and start it again with the same key. Of the
// refusals, only order_refused is final then: after any other, start it again.
//
// Run it only on a server: an API key must never reach a browser.

const { VOUCHER_BASE_URL: baseUrl, VOUCHER_API_KEY: apiKey } = process.env;
const second = 1000 * Number(process.env.VOUCHER_SECOND ?? 1); // tests set a shorter one
const patience = 360 * second; // request_in_progress can last five minutes
const late = 90 * second; // as long, an attempt without a response may still arrive

const sleep = (milliseconds: number) =>
    new Promise((resolve) => setTimeout(resolve, milliseconds));

interface Failure {
    code: string;
    reference?: string;
    retry_after_seconds?: number;
}
interface Order {
    reference: string;
}
/** The service's own JSON, or nothing if the response is from elsewhere. */
interface Answer {
    data?: Order;
    error?: Failure;
}

/**
 * This call of buy() charged nothing. Branch on error.code, then on
 * error.reason.
 */
class Refused extends Error {
    readonly error: Failure;
    constructor(error: Failure) {
        super(error.code);
        this.error = error;
    }
}

/**
 * The purchase may have been made. Retry with the same body and the
 * same idempotency key, never with a new one. Fix `error` first if there
 * is one.
 */
class OutcomeUnknown extends Error {
    readonly error: Failure | undefined;
    constructor(error?: Failure) {
        super();
        this.error = error;
    }
}

/**
 * Returns the order. If you calculate with its amounts, parse the JSON
 * with a library that reads numbers as decimals.
 */
async function buy(body: object, key: string): Promise<Order> {
    let unknownAt: number | undefined; // when the last attempt with an unknown outcome ended
    const ends = performance.now() + patience;
    for (let whole = second; ; whole = Math.min(2 * whole, 30 * second)) {
        const sent = performance.now();
        const { status, answer } = await call("POST", "/orders", body, key);
        if (status === 201 && answer.data) return answer.data;
        // Only the service's own JSON settles a purchase. After every other
        // response the outcome is unknown.
        let error: Failure = { code: "unclear" };
        if (status >= 400 && status < 500) error = answer.error ?? error;
        // A 429 of a proxy does not say how long to wait.
        let pause = status === 429 ? 30 * second : whole * (0.5 + Math.random() / 2);
        if (error.code === "request_abandoned") {
            unknownAt = performance.now();
            // Bought already: read the order, do not buy again.
            const read = await call("GET", `/orders/${error.reference}`);
            if (read.status === 200 && read.answer.data) {
                return read.answer.data;
            }
        } else if (error.code === "rate_limited") {
            pause = 1000 * (error.retry_after_seconds ?? 0) || pause;
        } else if (["unclear", "request_in_progress"].includes(error.code)) {
            unknownAt = performance.now();
        } else if (unknownAt === undefined) {
            throw new Refused(error);
        } else if (error.code !== "order_refused") {
            throw new OutcomeUnknown(error); // it says nothing about earlier attempts
        } else if (sent >= unknownAt + late) {
            throw new Refused(error);
        } else {
            // A refusal does not bind the key: an earlier attempt could still buy.
            pause = unknownAt + late + second - performance.now();
        }
        if (performance.now() + pause > ends) throw new OutcomeUnknown();
        console.error(`HTTP status ${status || "unknown"}: trying again`);
        await sleep(pause);
    }
}

/**
 * Returns the status and the service's own JSON. Status 0 means that no
 * response came. The JSON is empty if the response is incomplete, or is
 * from elsewhere, such as a proxy.
 */
async function call(
    method: string,
    path: string,
    body?: object,
    key = "",
): Promise<{ status: number; answer: Answer }> {
    const headers = new Headers({ Authorization: `Bearer ${apiKey}`, Accept: "application/json" });
    if (body) {
        headers.set("Content-Type", "application/json");
        headers.set("Idempotency-Key", key);
    }
    let status = 0;
    try {
        const response = await fetch(baseUrl + path, {
            method,
            headers,
            body: body ? JSON.stringify(body) : null,
            redirect: "manual", // the key must not go elsewhere
            signal: AbortSignal.timeout(35_000),
        });
        status = response.status;
        const answer: unknown = await response.json();
        if (isFromService(answer)) return { status, answer };
    } catch {
        // No response, an incomplete response, or no JSON.
    }
    return { status, answer: {} };
}

/** Whether it is {success: true, data} or {success: false, error: {code}}. */
function isFromService(answer: unknown): answer is Answer {
    const { success, data, error } = (answer ?? {}) as Record<string, unknown>;
    if (success === true) return data instanceof Object;
    const code = (error as Failure | undefined)?.code;
    return success === false && typeof code === "string";
}

/** Whether the text is a JSON object. */
function isObject(text: string): boolean {
    try {
        return JSON.parse(text) instanceof Object && text.trimStart().startsWith("{");
    } catch {
        return false;
    }
}

/** Returns what is wrong with the start of the program, if anything is. */
function problem(programArguments: string[]): string | undefined {
    const [body = "", key = ""] = programArguments;
    if (!baseUrl) return "Set VOUCHER_BASE_URL";
    if (!/^[!-~]+$/.test(apiKey ?? "")) {
        // Never print it.
        return "Set VOUCHER_API_KEY to the key only, without spaces or line ends";
    }
    if (programArguments.length !== 2 || !isObject(body) || !/^[ -~]+$/.test(key)) {
        return "Usage: buy.mjs BODY IDEMPOTENCY_KEY: a JSON object and printable ASCII";
    }
    return undefined;
}

/** Throws if the text cannot be written. */
function print(text: string): Promise<void> {
    return new Promise((done, fail) => {
        process.stdout.write(text, (error) => (error ? fail(error) : done()));
    });
}

const programArguments = process.argv.slice(2);
const wrong = problem(programArguments);
if (wrong) {
    console.error(wrong);
    process.exit(64);
}
try {
    const [body = "", key = ""] = programArguments;
    const order = await buy(JSON.parse(body), key);
    process.stdout.on("error", () => {}); // print() throws it
    await print(`${JSON.stringify(order)}\n`);
} catch (error) {
    if (error instanceof Refused) {
        console.log(JSON.stringify(error.error));
        process.exitCode = 1;
    } else {
        // Uncaught, it would end with 1: refused.
        const cause = error instanceof OutcomeUnknown ? error.error : String(error);
        if (cause) console.error(JSON.stringify(cause));
        console.error(
            "The outcome is unknown. Start again with the same idempotency key.",
        );
        process.exitCode = 2;
    }
}
