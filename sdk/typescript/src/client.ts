import { randomUUID } from "node:crypto";
import { inspect } from "node:util";

import { decide, pauseAfterRead, RULES } from "./core.js";
import type { Event, Rules, State } from "./core.js";
import type { Entry, Journal } from "./journal.js";
import { orderFromData } from "./models.js";
import type { Balance, Order, Outcome, Ping, Product, TopUpProduct } from "./models.js";
import { Pace } from "./pace.js";
import { reconcile } from "./reconciling.js";
import type { Period, Reconciliation } from "./reconciling.js";
import { NO_REPLY, readReply } from "./wire.js";
import type { Data, Failure, Reply, Request } from "./wire.js";

const PER_PAGE = 100;
const COPIES = 3; // attempts to copy a catalogue that changes meanwhile
const TIMEOUT = 35; // seconds for a whole response; the service ends a request after 30

/** The service refused a read. `error.code` says why. */
export class ApiError extends Error {
    constructor(readonly error: Failure) {
        super(`${error.code}: ${error.message}`);
    }
}

/** No response of the service came within the patience. Try again later. */
export class Unavailable extends Error {}

/** The order number belongs to a purchase with other content. Nothing was sent. */
export class OrderNumberTaken extends Error {}

/** The journal has no such purchase, or the transaction that wrote it is not committed. */
export class NotInJournal extends Error {}

/** The client has no order with this reference. */
export class ReferenceNotFound extends Error {}

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

    constructor({ baseUrl, apiKey, journal, rules }: Options) {
        if ("document" in globalThis || typeof process === "undefined" || !process.versions?.node) {
            throw new Error("Run this on a server: an API key must never reach a browser.");
        }
        const address = new URL(baseUrl);
        const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(address.hostname);
        if (address.protocol !== "https:" && !isLocal) {
            throw new Error("baseUrl must begin with https://, or anybody can read the API key.");
        }
        if (typeof apiKey !== "string" || !/^[!-~]+$/.test(apiKey)) {
            // No header can carry it. Never print it.
            throw new Error("apiKey must be the key only, without spaces or line ends.");
        }
        this.#baseUrl = baseUrl.replace(/\/+$/, "");
        this.#apiKey = apiKey;
        this.#journal = journal;
        this.#rules = { ...RULES, ...rules };
    }

    [inspect.custom](): string {
        return `Client(${this.#baseUrl})`;
    }

    /**
     * Writes a purchase to the journal and sends nothing. `complete` sends it. With `journal`, it is
     * written in the transaction of the shop.
     */
    async prepare(orderNumber: string, purchase: Purchase, journal?: Journal): Promise<void> {
        await this.#write(orderNumber, purchase, journal ?? this.#journal);
    }

    /** Sends a purchase of the journal, or reads its outcome if it is settled. */
    async complete(orderNumber: string): Promise<Outcome> {
        const entry = await this.#journal.find(orderNumber);
        if (!entry) throw new NotInJournal(orderNumber);
        return this.#settle(entry);
    }

    /**
     * Writes the purchase to the journal, and buys it once. With an order number that exists, it
     * continues that purchase, or returns its outcome.
     */
    async buy(orderNumber: string, purchase: Purchase): Promise<Outcome> {
        return this.#settle(await this.#write(orderNumber, purchase, this.#journal));
    }

    /**
     * Sends a refused purchase again, with the same key and text, at the present price. A purchase
     * that is older than 23 hours stays refused: buy it under another order number.
     */
    async retry(orderNumber: string): Promise<Outcome> {
        await this.#journal.reopen(orderNumber, today() - this.#rules.keyLifetime);
        return this.complete(orderNumber);
    }

    /** Settles all open purchases. Call it when the program starts, and every few minutes. */
    async resume(): Promise<Outcome[]> {
        const outcomes: Outcome[] = [];
        for (const entry of await this.#journal.openEntries()) {
            outcomes.push(await this.#settle(entry));
        }
        return outcomes;
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
        return orderFromData(await this.#read(`/orders/${encodeURIComponent(reference)}`));
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
     * that is not refunded within `refundPatience` seconds.
     */
    async *watch(
        references: Iterable<string>,
        { every = 30, refundPatience = 900 } = {},
    ): AsyncGenerator<Order> {
        const waiting = new Set(references);
        const failed = new Map<string, number>();
        if (this.#pace.limit === undefined) await this.ping();
        while (waiting.size > 0) {
            for (const order of await this.#current(waiting)) {
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
            if (waiting.size > 0) await sleep(every * (1 + Math.random() / 10));
        }
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
    ): Promise<Entry> {
        const delivery = "player_id" in purchase ? { delivery_type: "top_up" } : {};
        const entry: Entry = {
            orderNumber,
            key: randomUUID(),
            body: JSON.stringify({ ...delivery, ...purchase }),
            openedAt: today(),
            state: "open",
        };
        const stored = await journal.write(entry);
        if (stored.body !== entry.body) throw new OrderNumberTaken(orderNumber);
        return stored;
    }

    /** Carries out what the core decides, until the purchase is settled or left open. */
    async #settle(entry: Entry): Promise<Outcome> {
        const { orderNumber } = entry;
        if (entry.state === "refused" && entry.error) {
            return { kind: "refused", orderNumber, error: entry.error };
        }
        if (entry.state === "bought" && entry.reference) {
            return this.#readBought(orderNumber, entry.reference);
        }
        let state = this.#firstState(entry);
        let { sentAt } = entry;
        let event: Event = { kind: "begin" };
        for (;;) {
            const decision = decide(state, event, this.#circumstances());
            state = decision[0];
            const action = decision[1];
            if (action.kind === "bought") {
                const order = orderFromData(action.data);
                const total = order.total_price.toString();
                await this.#journal.settleBought(orderNumber, order.reference, total);
                return { kind: "bought", orderNumber, order };
            }
            if (action.kind === "refused") {
                await this.#journal.settleRefused(orderNumber, sentAt ?? 0, action.error);
                // Another process may have sent it meanwhile, or bought.
                const stored = await this.#journal.find(orderNumber);
                if (stored && stored.state !== "open") return this.#settle(stored);
                return { kind: "unknown", orderNumber, error: action.error };
            }
            if (action.kind === "open") {
                return {
                    kind: "unknown",
                    orderNumber,
                    ...(action.error ? { error: action.error } : {}),
                    ...(state.reference ? { reference: state.reference } : {}),
                };
            }
            if (action.after > 0) await sleep(action.after);
            if (action.kind === "read") {
                event = await this.#exchange({ method: "GET", path: `/orders/${action.reference}` });
                continue;
            }
            const request: Request = {
                method: "POST",
                path: "/orders",
                body: entry.body,
                idempotencyKey: entry.key,
            };
            await this.#waitForTurn(request);
            const before = sentAt;
            sentAt = today();
            const isOurs = await this.#journal.beginAttempt(orderNumber, before, sentAt);
            if (!isOurs) return this.complete(orderNumber); // another process has sent or settled it
            event = await this.#send(request);
        }
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

    async #readBought(orderNumber: string, reference: string): Promise<Outcome> {
        try {
            return { kind: "bought", orderNumber, order: await this.order(reference) };
        } catch (problem) {
            if (problem instanceof ApiError) {
                return { kind: "unknown", orderNumber, reference, error: problem.error };
            }
            if (problem instanceof Unavailable) return { kind: "unknown", orderNumber, reference };
            throw problem;
        }
    }

    async #read(path: string): Promise<Data> {
        const started = now();
        for (let tries = 0; ; tries++) {
            const reply = await this.#exchange({ method: "GET", path });
            if (reply.kind === "success") return reply.data;
            const waited = now() - started;
            const pause = pauseAfterRead(tries, reply, waited, this.#circumstances());
            if (pause === undefined) {
                if (reply.kind === "refusal") throw new ApiError(reply.error);
                throw new Unavailable(`GET ${path}: HTTP status ${reply.status || "unknown"}`);
            }
            await sleep(pause);
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

    /** The orders of these references: many from pages of the list, the rest one by one. */
    async #current(waiting: ReadonlySet<string>): Promise<Order[]> {
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
            if (!found.has(reference)) found.set(reference, await this.order(reference));
        }
        return [...found.values()];
    }

    /** One request and its reply, when the pace allows it. */
    async #exchange(request: Request): Promise<Reply> {
        await this.#waitForTurn(request);
        return this.#send(request);
    }

    async #waitForTurn(request: Request): Promise<void> {
        for (;;) {
            const wait = this.#pace.ask(request, request.method === "POST", now());
            if (wait === 0) return;
            await sleep(wait);
        }
    }

    async #send(request: Request): Promise<Reply> {
        const reply = await this.#receive(request);
        if (reply.kind === "refusal" && reply.error.code === "rate_limited") {
            this.#pace.block(now() + Math.max(1, reply.error.retry_after_seconds ?? 1));
        }
        return reply;
    }

    async #receive({ method, path, body, idempotencyKey }: Request): Promise<Reply> {
        try {
            const response = await fetch(this.#baseUrl + path, {
                method,
                headers: {
                    Authorization: `Bearer ${this.#apiKey}`,
                    Accept: "application/json",
                    ...(idempotencyKey
                        ? { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey }
                        : {}),
                },
                ...(body === undefined ? {} : { body }),
                redirect: "manual",
                signal: AbortSignal.timeout(TIMEOUT * 1000),
            });
            return readReply(response.status, await response.text());
        } catch {
            return NO_REPLY;
        }
    }

    #circumstances(): { now: number; chance: number; rules: Rules } {
        return { now: now(), chance: Math.random(), rules: this.#rules };
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

function sleep(seconds: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
