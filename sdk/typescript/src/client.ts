import { randomUUID } from "node:crypto";
import { inspect } from "node:util";

import { decide, pauseAfterRead, RULES } from "./core.js";
import type { Event, Rules, State } from "./core.js";
import type { Entry, Journal } from "./journal.js";
import { orderFromData } from "./models.js";
import type { Balance, Order, Outcome, Ping, Product, TopUpProduct } from "./models.js";
import { Pace } from "./pace.js";
import { debitsOfKey, reconcile } from "./reconciling.js";
import type { Period, Reconciliation } from "./reconciling.js";
import { isSameContent, lastReply, readReply } from "./wire.js";
import type { Data, Failure, LastReply, Reply, Request } from "./wire.js";

const PER_PAGE = 100;
const COPIES = 3; // attempts to copy a catalogue that changes meanwhile
const TIMEOUT = 35; // seconds for a whole response; the service ends a request after 30

const USER_AGENT = "voucher-topup-typescript/VERSION_OF_PACKAGE"; // build.mjs writes it
const KEY = /^[!-+\-.-~]([ -+\-.-~]{0,126}[!-+\-.-~])?$/;
const NOT_DEBITED: Failure = {
    code: "not_debited",
    message: "The statement has no debit of this purchase.",
};

/** The service refused a read. `error.code` says why; tell `last.requestId` to support. */
export class ApiError extends Error {
    override readonly name = "ApiError";

    constructor(
        readonly error: Failure,
        readonly last: LastReply,
    ) {
        super(`${error.code}: ${error.message}${named(last)}`);
    }
}

/** No response of the service came within the patience. Try again later. */
export class Unavailable extends Error {
    override readonly name = "Unavailable";

    constructor(
        message: string,
        readonly last?: LastReply,
    ) {
        super(last ? `${message}: ${describe(last)}` : message);
    }
}

/** The order number belongs to a purchase with other content. Nothing was sent. */
export class OrderNumberTaken extends Error {
    override readonly name = "OrderNumberTaken";
}

/** The journal has no such purchase, or the transaction that wrote it is not committed. */
export class NotInJournal extends Error {
    override readonly name = "NotInJournal";
}

/** The client has no order with this reference. */
export class ReferenceNotFound extends Error {
    override readonly name = "ReferenceNotFound";
}

/** What the library did, for logs. It has no API key and no code. */
export interface LogEvent {
    readonly level: "info" | "warning";
    readonly message: string;
    readonly orderNumber?: string;
    readonly last?: LastReply;
}

/** How long a call may take. Afterwards the outcome is unknown, and the purchase stays open. */
export interface CallOptions {
    /** Seconds. Without it, a purchase takes up to 95, or 390 after request_in_progress. */
    readonly timeout?: number;
    readonly signal?: AbortSignal;
}

export interface BuyOptions extends CallOptions {
    /** The idempotency key, such as the order number. Without one it is random. */
    readonly key?: string;
}

/** Name the product by `product_id` or by `merchant_reference`. */
export type VoucherPurchase = { quantity: number } & (
    | { product_id: number; variation_id?: number; merchant_reference?: never }
    | { merchant_reference: string; product_id?: never; variation_id?: never }
);

export interface TopUpPurchase {
    system_product_id: number;
    player_id: string;
    fields?: Record<string, string>;
}

export type Purchase = VoucherPurchase | TopUpPurchase;

export interface Options {
    baseUrl: string;
    apiKey: string;
    journal: Journal;
    rules?: Partial<Rules>;
    /** Your own fetch, such as one with a proxy. */
    fetch?: typeof globalThis.fetch;
    log?: (event: LogEvent) => void;
}

/** When a call ends: a time of `now()`, and the signal of the caller. */
interface Limits {
    readonly begins: number;
    readonly ends: number;
    readonly signal?: AbortSignal;
}

export interface Catalogue<T> {
    readonly products: readonly T[];
    /** Known ids that the service has confirmed to be off sale. */
    readonly gone: readonly number[];
}

/** Buys through one API key. It runs only on a server: an API key must never reach a browser. */
export class Client {
    readonly #apiKey: string;
    readonly #baseUrl: string;
    readonly #journal: Journal;
    readonly #rules: Rules;
    readonly #pace = new Pace();
    readonly #fetch: typeof globalThis.fetch;
    readonly #log: (event: LogEvent) => void;

    constructor({ baseUrl, apiKey, journal, rules, fetch, log }: Options) {
        if ("document" in globalThis || typeof process === "undefined" || !process.versions?.node) {
            throw new Error("Run this on a server: an API key must never reach a browser.");
        }
        const address = new URL(baseUrl);
        const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(address.hostname);
        if (address.protocol !== "https:" && !isLocal) {
            throw new Error("baseUrl must begin with https://, or anybody can read the API key.");
        }
        if (!address.pathname.replace(/\/+$/, "").endsWith("/api/v1")) {
            throw new Error("baseUrl must end with /api/v1: it is the address with the version.");
        }
        if (typeof apiKey !== "string" || !/^[!-~]+$/.test(apiKey)) {
            // No header can carry it. Never print it.
            throw new Error("apiKey must be the key only, without spaces or line ends.");
        }
        this.#baseUrl = baseUrl.replace(/\/+$/, "");
        this.#apiKey = apiKey;
        this.#journal = journal;
        this.#rules = { ...RULES, ...rules };
        this.#fetch = fetch ?? globalThis.fetch;
        this.#log = log ?? (() => undefined);
    }

    [inspect.custom](): string {
        return `Client(${this.#baseUrl})`;
    }

    /**
     * Writes a purchase to the journal and sends nothing. `complete` sends it. With `journal`, it is
     * written in the transaction of the shop.
     */
    async prepare(
        orderNumber: string,
        purchase: Purchase,
        journal?: Journal,
        key?: string,
    ): Promise<void> {
        await this.#write(orderNumber, purchase, journal ?? this.#journal, key);
    }

    /** Sends a purchase of the journal, or reads its outcome if it is settled. */
    async complete(orderNumber: string, options?: CallOptions): Promise<Outcome> {
        return this.#settle(await this.#stored(orderNumber), limits(options));
    }

    /**
     * Writes the purchase to the journal, and buys it once. With an order number that exists, it
     * continues that purchase, or returns its outcome.
     */
    async buy(orderNumber: string, purchase: Purchase, options?: BuyOptions): Promise<Outcome> {
        const until = limits(options);
        const entry = await this.#write(orderNumber, purchase, this.#journal, options?.key);
        return this.#settle(entry, until);
    }

    /**
     * Sends a refused purchase again, with the same key and text, at the present price. A purchase
     * that is older than 23 hours stays refused: buy it under another order number.
     */
    async retry(orderNumber: string, options?: CallOptions): Promise<Outcome> {
        await this.#journal.reopen(orderNumber, today() - this.#rules.keyLifetime);
        return this.complete(orderNumber, options);
    }

    /**
     * Settles all open purchases. Call it when the program starts, and every few minutes. `timeout`
     * is for each purchase; `atOnce` purchases are sent at the same time.
     */
    async resume({ atOnce = 4, ...options }: CallOptions & { atOnce?: number } = {}): Promise<
        Outcome[]
    > {
        const entries = (await this.#journal.openEntries()).entries();
        const outcomes: Outcome[] = [];
        const work = async (): Promise<void> => {
            for (const [place, entry] of entries) {
                outcomes[place] = await this.#settle(entry, limits(options));
            }
        };
        await Promise.all(Array.from({ length: atOnce }, work));
        return outcomes;
    }

    /**
     * Settles an open purchase that is too old to be sent, by what the statement says. The statement
     * is that of `reconcile`. Its period must contain every attempt, and five minutes on each side.
     * With a debit of the purchase's key, it was bought; without one it is refused, with the code
     * `not_debited`.
     */
    async closePurchase(orderNumber: string, statement: string, period: Period): Promise<Outcome> {
        const entry = await this.#stored(orderNumber);
        if (entry.state === "open") {
            const debits = [];
            for (const debit of debitsOfKey(statement, entry, period)) {
                if (await this.#isOfThisClient(debit.reference)) debits.push(debit);
            }
            const [debit, ...others] = debits;
            if (others.length > 0) {
                throw new RangeError(`The statement has several debits of ${orderNumber}: ask support`);
            }
            if (debit) {
                await this.#journal.settleBought(orderNumber, debit.reference, debit.total);
            } else {
                const sentAt = entry.sentAt ?? today();
                // Only an attempt can be settled.
                if (entry.sentAt === undefined) {
                    await this.#journal.beginAttempt(orderNumber, undefined, sentAt);
                }
                await this.#journal.settleRefused(orderNumber, sentAt, NOT_DEBITED);
            }
        }
        return this.complete(orderNumber);
    }

    /** The name of the client and its limit, which the client keeps from now on. */
    async ping(): Promise<Ping> {
        const ping = (await this.#read("/ping")) as unknown as Ping;
        this.#pace.limit = ping.rate_limit_per_minute;
        return ping;
    }

    async balance(): Promise<Balance> {
        return (await this.#read("/balance")) as unknown as Balance;
    }

    async products(options: { search?: string; inStock?: boolean } = {}): Promise<Product[]> {
        const query = {
            ...(options.search ? { search: options.search } : {}),
            ...(options.inStock ? { in_stock: "1" } : {}),
        };
        return (await this.#copy("/products", query)) as unknown as Product[];
    }

    async product(id: number): Promise<Product> {
        return (await this.#read(`/products/${id}`)) as unknown as Product;
    }

    async topupProducts(search = ""): Promise<TopUpProduct[]> {
        const rows = await this.#copy("/topup-products", search ? { search } : {});
        return rows as unknown as TopUpProduct[];
    }

    async topupProduct(id: number): Promise<TopUpProduct> {
        return (await this.#read(`/topup-products/${id}`)) as unknown as TopUpProduct;
    }

    async order(reference: string): Promise<Order> {
        return orderFromData(await this.#read(orderPath(reference)));
    }

    /** A complete copy of the voucher catalogue. `known` are the ids of your last copy. */
    sync(known: Iterable<number> = []): Promise<Catalogue<Product>> {
        return this.#sync(known, () => this.products(), (id) => this.product(id));
    }

    /** A complete copy of the top-up catalogue. `known` are the ids of your last copy. */
    syncTopups(known: Iterable<number> = []): Promise<Catalogue<TopUpProduct>> {
        return this.#sync(known, () => this.topupProducts(), (id) => this.topupProduct(id));
    }

    /** The orders after this reference, the oldest first; all orders without one. */
    async since(reference?: string): Promise<Order[]> {
        const found = new Map<string, Order>();
        for await (const row of this.#orders()) {
            const name = String(row.reference);
            if (name === reference) return [...found.values()].reverse();
            // New orders move rows to the next page, where they appear again.
            if (!found.has(name)) found.set(name, orderFromData(row));
        }
        if (reference !== undefined) throw new ReferenceNotFound(reference);
        return [...found.values()].reverse();
    }

    /**
     * Yields each top-up when it is delivered, or failed and refunded. It also yields a failed order
     * that is not refunded within `refundPatience` seconds. An outage only delays it. Throws
     * ReferenceNotFound at the end if the client has no such order.
     */
    async *watch(
        references: Iterable<string>,
        { every = 30, refundPatience = 900 } = {},
    ): AsyncGenerator<Order> {
        const waiting = new Set(references);
        const failed = new Map<string, number>();
        const unknown = new Set<string>();
        while (waiting.size > 0) {
            for (const order of await this.#currentIfUp(waiting, unknown)) {
                let isFinal = order.status === "completed";
                if (order.status === "failed" && order.kind === "top_up") {
                    const since = failed.get(order.reference) ?? now();
                    failed.set(order.reference, since);
                    isFinal = order.refunded || now() - since >= refundPatience;
                }
                if (isFinal) {
                    waiting.delete(order.reference);
                    yield order;
                }
            }
            for (const reference of unknown) waiting.delete(reference);
            if (waiting.size > 0) await sleep(every * (1 + Math.random() / 10));
        }
        if (unknown.size > 0) throw new ReferenceNotFound([...unknown].join(", "));
    }

    /**
     * Compares the journal with a statement of the merchant site, as CSV or JSON.
     *
     * `since` and `until` are its first and its last day, in UTC, as a key for books gives them. They
     * must be over. A purchase of these days needs a debit, even if the statement is empty. A purchase
     * near midnight whose debit is not in the statement is in `purchasesAtTheEdge`, and is no
     * difference: the day before or after may have the debit. Each day, compare the last two days:
     * then each purchase is checked.
     */
    reconcile(statement: string, period?: Period): Promise<Reconciliation> {
        return reconcile(statement, this.#journal, period);
    }

    async #write(
        orderNumber: string,
        purchase: Purchase,
        journal: Journal,
        key: string = randomUUID(),
    ): Promise<Entry> {
        if (!KEY.test(key)) {
            throw new RangeError("A key has 1 to 128 printable ASCII characters, without a comma.");
        }
        const delivery = "player_id" in purchase ? { delivery_type: "top_up" } : {};
        const entry: Entry = {
            orderNumber,
            key,
            body: JSON.stringify({ ...delivery, ...purchase }),
            openedAt: today(),
            state: "open",
        };
        const stored = await journal.write(entry);
        if (!isSameContent(stored.body, entry.body)) throw new OrderNumberTaken(orderNumber);
        return stored;
    }

    /** Carries out what the core decides, until the purchase is settled or left open. */
    async #settle(entry: Entry, until: Limits): Promise<Outcome> {
        const { orderNumber } = entry;
        if (entry.state === "refused" && entry.error) {
            return { kind: "refused", orderNumber, error: entry.error };
        }
        if (entry.state === "bought" && entry.reference) {
            return this.#readBought(orderNumber, entry.reference, until);
        }
        let state = this.#firstState(entry);
        let { sentAt } = entry;
        let event: Event = { kind: "begin" };
        let last: LastReply = { status: 0, cause: "it is older than 23 hours, so it is not sent again" };
        for (;;) {
            const decision = decide(state, event, this.#circumstances(until));
            state = decision[0];
            const action = decision[1];
            if (action.kind === "bought") {
                const order = orderFromData(action.data);
                const total = order.total_price.toString();
                await this.#journal.settleBought(orderNumber, order.reference, total);
                this.#log({ level: "info", message: `bought as ${order.reference}`, orderNumber });
                return { kind: "bought", orderNumber, order };
            }
            if (action.kind === "refused") {
                await this.#journal.settleRefused(orderNumber, sentAt ?? 0, action.error);
                // Another process may have sent it meanwhile, or bought.
                const stored = await this.#journal.find(orderNumber);
                if (stored && stored.state !== "open") return this.#settle(stored, until);
                return { kind: "unknown", orderNumber, error: action.error, last };
            }
            if (action.kind === "open") {
                const message = `the outcome is unknown: ${describe(last)}`;
                this.#log({ level: "warning", message, orderNumber, last });
                return {
                    kind: "unknown",
                    orderNumber,
                    ...(action.error ? { error: action.error } : {}),
                    ...(state.reference ? { reference: state.reference } : {}),
                    last,
                };
            }
            if (action.after > 0) {
                const message = `again in ${action.after.toFixed(1)} s: ${describe(last)}`;
                this.#log({ level: "info", message, orderNumber, last });
                await sleep(action.after, until.signal);
            }
            if (action.kind === "read") {
                event = await this.#exchange({ method: "GET", path: orderPath(action.reference) }, until);
                if (event.kind !== "success") last = lastReply(event);
                continue;
            }
            const request: Request = {
                method: "POST",
                path: "/orders",
                body: entry.body,
                idempotencyKey: entry.key,
            };
            if (!(await this.#waitForTurn(request, until))) {
                return { kind: "unknown", orderNumber, last: NO_TURN };
            }
            const before = sentAt;
            sentAt = today();
            const isOurs = await this.#journal.beginAttempt(orderNumber, before, sentAt);
            // Another process has sent or settled it.
            if (!isOurs) return this.#settle(await this.#stored(orderNumber), until);
            event = await this.#send(request, until);
            if (event.kind !== "success") last = lastReply(event);
        }
    }

    /** Whether it can read the order. Other clients of the account may use the same key. */
    async #isOfThisClient(reference: string): Promise<boolean> {
        try {
            await this.order(reference);
            return true;
        } catch (problem) {
            if (problem instanceof ApiError && problem.error.code === "order_not_found") return false;
            throw problem;
        }
    }

    async #stored(orderNumber: string): Promise<Entry> {
        const entry = await this.#journal.find(orderNumber);
        if (!entry) throw new NotInJournal(orderNumber);
        return entry;
    }

    /** The state after the attempts of earlier calls, of which none has left its outcome. */
    #firstState({ openedAt, sentAt }: Entry): State {
        const started = now();
        const keyEnds = started + this.#rules.keyLifetime - (today() - openedAt);
        const state: State = { started, keyEnds, doubt: false, lateUntil: 0, sent: 0, tries: 0 };
        if (sentAt === undefined) return state;
        const age = Math.max(0, today() - sentAt);
        return { ...state, doubt: true, lateUntil: started + this.#rules.attemptLifetime - age };
    }

    async #readBought(orderNumber: string, reference: string, until: Limits): Promise<Outcome> {
        try {
            const order = orderFromData(await this.#read(orderPath(reference), until));
            return { kind: "bought", orderNumber, order };
        } catch (problem) {
            if (!(problem instanceof ApiError || problem instanceof Unavailable)) throw problem;
            return {
                kind: "unknown",
                orderNumber,
                reference,
                ...(problem instanceof ApiError ? { error: problem.error } : {}),
                ...(problem.last ? { last: problem.last } : {}),
            };
        }
    }

    async #read(path: string, until: Limits = limits()): Promise<Data> {
        const started = now();
        for (let tries = 0; ; tries++) {
            const reply = await this.#exchange({ method: "GET", path }, until);
            if (reply.kind === "success") return reply.data;
            const waited = now() - started;
            const pause = pauseAfterRead(tries, reply, waited, this.#circumstances(until));
            if (pause === undefined) {
                if (reply.kind === "refusal") throw new ApiError(reply.error, lastReply(reply));
                throw new Unavailable(`GET ${path}`, lastReply(reply));
            }
            await sleep(pause, until.signal);
        }
    }

    /** Everything of a list, each row once, and only if the list did not change meanwhile. */
    async #copy(path: string, query: Record<string, string>): Promise<Data[]> {
        for (let copy = 0; copy < COPIES; copy++) {
            const rows = new Map<unknown, Data>();
            const totals = new Set<number>();
            for (let page = 1, last = 1; page <= last; page++) {
                const data = await this.#page(path, page, query);
                last = data.pagination.last_page;
                totals.add(data.pagination.total);
                for (const row of data.items) rows.set(row.id, row);
            }
            if (totals.size === 1 && totals.has(rows.size)) return [...rows.values()];
        }
        throw new Unavailable(`${path} changed while it was copied, ${COPIES} times`);
    }

    async #page(path: string, page: number, query: Record<string, string> = {}): Promise<Page> {
        const all = { ...query, per_page: String(PER_PAGE), page: String(page) };
        return (await this.#read(`${path}?${new URLSearchParams(all)}`)) as unknown as Page;
    }

    async *#orders(): AsyncGenerator<Data> {
        for (let page = 1, last = 1; page <= last; page++) {
            const data = await this.#page("/orders", page);
            last = data.pagination.last_page;
            yield* data.items;
        }
    }

    async #sync<T extends { id: number }>(
        known: Iterable<number>,
        readAll: () => Promise<T[]>,
        readOne: (id: number) => Promise<T>,
    ): Promise<Catalogue<T>> {
        const products = await readAll();
        const listed = new Set(products.map((product) => product.id));
        const gone: number[] = [];
        for (const id of new Set(known)) {
            if (listed.has(id)) continue;
            try {
                products.push(await readOne(id));
            } catch (problem) {
                const isGone =
                    problem instanceof ApiError && problem.error.code === "product_not_found";
                if (!isGone) throw problem;
                gone.push(id);
            }
        }
        return { products, gone };
    }

    /** The orders of these references; none while the service is down. */
    async #currentIfUp(waiting: ReadonlySet<string>, unknown: Set<string>): Promise<Order[]> {
        try {
            if (this.#pace.limit === undefined) await this.ping();
            return await this.#current(waiting, unknown);
        } catch (problem) {
            const isDown =
                problem instanceof Unavailable ||
                (problem instanceof ApiError &&
                    (problem.last.status === 429 || problem.last.status >= 500));
            if (!isDown) throw problem;
            this.#log({ level: "warning", message: `watch: ${problem.message}` });
            return [];
        }
    }

    /** The orders of these references: many from pages of the list, the rest one by one. */
    async #current(waiting: ReadonlySet<string>, unknown: Set<string>): Promise<Order[]> {
        const found = new Map<string, Order>();
        let helps = waiting.size > 1;
        for (let page = 1, last = 1; helps && page <= last && found.size < waiting.size; page++) {
            const data = await this.#page("/orders", page);
            last = data.pagination.last_page;
            const rows = data.items.filter((row) => waiting.has(String(row.reference)));
            for (const row of rows) found.set(String(row.reference), orderFromData(row));
            helps = rows.length > 1;
        }
        for (const reference of waiting) {
            if (found.has(reference)) continue;
            try {
                found.set(reference, await this.order(reference));
            } catch (problem) {
                const isMissing =
                    problem instanceof RangeError ||
                    (problem instanceof ApiError && problem.error.code === "order_not_found");
                if (!isMissing) throw problem;
                unknown.add(reference);
            }
        }
        return [...found.values()];
    }

    /** One request and its reply, when the pace allows it. */
    async #exchange(request: Request, until: Limits): Promise<Reply> {
        const isTurn = await this.#waitForTurn(request, until);
        return isTurn ? this.#send(request, until) : { kind: "foreign", ...NO_TURN };
    }

    /** Returns false if the turn would come after the end. */
    async #waitForTurn(request: Request, { ends, signal }: Limits): Promise<boolean> {
        try {
            for (;;) {
                const wait = this.#pace.ask(request, request.method === "POST", now());
                if (wait === 0) return true;
                if (signal?.aborted || now() + wait > ends) return false;
                await sleep(wait, signal);
            }
        } finally {
            this.#pace.forget(request);
        }
    }

    async #send(request: Request, until: Limits): Promise<Reply> {
        const reply = await this.#receive(request, until);
        if (reply.kind === "refusal" && reply.error.code === "rate_limited") {
            this.#pace.block(now() + Math.max(1, reply.error.retry_after_seconds ?? 1));
        }
        return reply;
    }

    async #receive(
        { method, path, body, idempotencyKey }: Request,
        { ends, signal }: Limits,
    ): Promise<Reply> {
        const seconds = Math.max(0.05, Math.min(TIMEOUT, ends - now()));
        const ending = endingSignal(seconds, signal);
        try {
            const response = await this.#fetch(this.#baseUrl + path, {
                method,
                headers: {
                    Authorization: `Bearer ${this.#apiKey}`,
                    Accept: "application/json",
                    "User-Agent": USER_AGENT,
                    ...(idempotencyKey
                        ? { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey }
                        : {}),
                },
                ...(body === undefined ? {} : { body }),
                redirect: "manual",
                signal: ending.signal,
            });
            const requestId = response.headers.get("X-Request-Id") ?? undefined;
            return readReply(response.status, await response.text(), requestId);
        } catch (problem) {
            return noReply(problem);
        } finally {
            ending.forget();
        }
    }

    #circumstances(until: Limits): { now: number; chance: number; rules: Rules } {
        const time = now();
        let rules = this.#rules;
        if (until.signal?.aborted) rules = { ...rules, patience: -Infinity, progressPatience: -Infinity };
        else if (until.ends !== Infinity) {
            const patience = Math.min(rules.patience, until.ends - until.begins);
            rules = { ...rules, patience, progressPatience: 0 };
        }
        return { now: time, chance: Math.random(), rules };
    }
}

interface Page {
    readonly items: readonly Data[];
    readonly pagination: { readonly last_page: number; readonly total: number };
}

/** Seconds of Unix time, which other processes share. */
function today(): number {
    return Date.now() / 1000;
}

/** Seconds of a clock that never goes back. */
function now(): number {
    return performance.now() / 1000;
}

/** Ends early if the signal is aborted. */
function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
        const end = (): void => {
            clearTimeout(timer);
            signal?.removeEventListener("abort", end);
            resolve();
        };
        const timer = setTimeout(end, signal?.aborted ? 0 : seconds * 1000);
        signal?.addEventListener("abort", end);
    });
}

function limits({ timeout, signal }: CallOptions = {}): Limits {
    const begins = now();
    const ends = timeout === undefined ? Infinity : begins + timeout;
    return { begins, ends, ...(signal ? { signal } : {}) };
}

/** A signal that is aborted after some seconds, or with the other. Node.js 18 has no AbortSignal.any. */
function endingSignal(
    seconds: number,
    other?: AbortSignal,
): { signal: AbortSignal; forget: () => void } {
    const controller = new AbortController();
    const abort = (): void => controller.abort(other?.aborted ? "aborted" : "timeout");
    const timer = setTimeout(abort, other?.aborted ? 0 : seconds * 1000);
    other?.addEventListener("abort", abort);
    const forget = (): void => {
        clearTimeout(timer);
        other?.removeEventListener("abort", abort);
    };
    return { signal: controller.signal, forget };
}

const NO_TURN: LastReply = { status: 0, cause: "the limit of requests leaves no time" };
/** Codes of errors after which waiting does not help: nothing was sent. */
const UNREACHABLE =
    /^(ENOTFOUND|CERT_.*|.*_CERT|.*_CERT_.*|.*_SIGNATURE|ERR_TLS_CERT_ALTNAME_INVALID|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/;

/** What to report when no complete response came. */
function noReply(problem: unknown): Reply {
    const inner: unknown = problem instanceof Error ? (problem.cause ?? problem) : problem;
    const code = (inner as { code?: unknown } | undefined)?.code;
    const cause = [typeof code === "string" ? code : "", inner instanceof Error ? inner.message : String(inner)];
    const isUnreachable = typeof code === "string" && UNREACHABLE.test(code);
    return {
        kind: "foreign",
        status: 0,
        cause: cause.filter(Boolean).join(": "),
        ...(isUnreachable ? { isUnreachable } : {}),
    };
}

function describe({ status, cause, requestId }: LastReply): string {
    const received = status ? `HTTP status ${status}` : "no response";
    return `${received}${cause ? ` (${cause})` : ""}${named({ requestId })}`;
}

function named({ requestId }: { requestId?: string | undefined }): string {
    return requestId ? `, X-Request-Id ${requestId}` : "";
}

function orderPath(reference: string): string {
    if (["", ".", ".."].includes(reference)) throw new RangeError(`Not a reference: "${reference}"`);
    return `/orders/${encodeURIComponent(reference)}`;
}
