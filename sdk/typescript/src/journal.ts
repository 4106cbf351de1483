import type { Failure } from "./wire.js";

/** A purchase in the journal. `openedAt`, and `sentAt` of its last attempt, are Unix times. */
export interface Entry {
    readonly orderNumber: string;
    readonly key: string;
    /** The exact text of the request. */
    readonly body: string;
    readonly openedAt: number;
    readonly state: "open" | "bought" | "refused";
    readonly reference?: string;
    readonly total?: string;
    readonly error?: Failure;
    readonly sentAt?: number;
}

/**
 * Where purchases are written before they are sent, so that a crash loses none. Each method is one
 * durable transaction. `orderNumber` and `key` are unique. A purchase that was bought stays bought.
 * A journal keeps no code. A journal belongs to one API client: with the key of another, the
 * service would buy again.
 */
export interface Journal {
    /** Stores the entry. If the order number exists, returns the stored entry instead. */
    write(entry: Entry): Promise<Entry>;
    find(orderNumber: string): Promise<Entry | undefined>;
    /** All open purchases, the oldest first. */
    openEntries(): Promise<Entry[]>;
    boughtEntries(): Promise<Entry[]>;
    /**
     * Stores the time of an attempt. Returns false, and does nothing, if the purchase is not open,
     * or if its last attempt was not at `before`.
     */
    beginAttempt(orderNumber: string, before: number | undefined, sentAt: number): Promise<boolean>;
    /** Makes an open or refused purchase bought. */
    settleBought(orderNumber: string, reference: string, total: string): Promise<void>;
    /** Makes an open purchase refused, unless there was an attempt after `sentAt`. */
    settleRefused(orderNumber: string, sentAt: number, error: Failure): Promise<void>;
    /**
     * Makes a refused purchase open again, with the same key and text, as if it had not been sent.
     * Does nothing if it was written before `openedAfter`.
     */
    reopen(orderNumber: string, openedAfter: number): Promise<void>;
}

/** A journal that a crash loses, with every purchase in it. For experiments only. */
export class MemoryJournal implements Journal {
    private readonly entries = new Map<string, Entry>();

    async write(entry: Entry): Promise<Entry> {
        const stored = this.entries.get(entry.orderNumber);
        if (!stored) this.entries.set(entry.orderNumber, entry);
        return stored ?? entry;
    }

    async find(orderNumber: string): Promise<Entry | undefined> {
        return this.entries.get(orderNumber);
    }

    async openEntries(): Promise<Entry[]> {
        return [...this.entries.values()].filter((entry) => entry.state === "open");
    }

    async boughtEntries(): Promise<Entry[]> {
        return [...this.entries.values()].filter((entry) => entry.state === "bought");
    }

    async beginAttempt(
        orderNumber: string,
        before: number | undefined,
        sentAt: number,
    ): Promise<boolean> {
        const entry = this.entries.get(orderNumber);
        if (entry?.state !== "open" || entry.sentAt !== before) return false;
        this.entries.set(orderNumber, { ...entry, sentAt });
        return true;
    }

    async settleBought(orderNumber: string, reference: string, total: string): Promise<void> {
        const entry = this.entries.get(orderNumber);
        if (!entry || entry.state === "bought") return;
        const { error: _, ...rest } = entry;
        this.entries.set(orderNumber, { ...rest, state: "bought", reference, total });
    }

    async settleRefused(orderNumber: string, sentAt: number, error: Failure): Promise<void> {
        const entry = this.entries.get(orderNumber);
        if (entry?.state !== "open" || entry.sentAt !== sentAt) return;
        this.entries.set(orderNumber, { ...entry, state: "refused", error });
    }

    async reopen(orderNumber: string, openedAfter: number): Promise<void> {
        const entry = this.entries.get(orderNumber);
        if (entry?.state !== "refused" || entry.openedAt <= openedAfter) return;
        const { error: _, sentAt: __, ...rest } = entry;
        this.entries.set(orderNumber, { ...rest, state: "open" });
    }
}

const COLUMNS =
    "order_number, idempotency_key, body, opened_at, state, reference, total, error, sent_at";
const CREATE = `
CREATE TABLE IF NOT EXISTS voucher_purchases (
    order_number text PRIMARY KEY,
    idempotency_key text NOT NULL UNIQUE,
    body text NOT NULL,
    opened_at double precision NOT NULL,
    sent_at double precision,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'bought', 'refused')),
    reference text UNIQUE,
    total text,
    error text,
    CHECK ((state = 'bought') = (reference IS NOT NULL)),
    CHECK ((state = 'refused') = (error IS NOT NULL))
)`;
const CREATE_INDEX = `
CREATE INDEX IF NOT EXISTS voucher_purchases_open ON voucher_purchases (opened_at)
WHERE state = 'open'`;

type Row = Record<string, unknown>;

/** The statements that SQLite and PostgreSQL share. `$1` is the first value. */
abstract class SqlJournal implements Journal {
    protected abstract query(statement: string, values: unknown[]): Promise<Row[]>;

    /** Creates the table unless it exists. */
    async createTable(): Promise<void> {
        await this.query(CREATE, []);
        await this.query(CREATE_INDEX, []);
    }

    async write(entry: Entry): Promise<Entry> {
        await this.query(
            `INSERT INTO voucher_purchases (order_number, idempotency_key, body, opened_at)
             VALUES ($1, $2, $3, $4) ON CONFLICT (order_number) DO NOTHING`,
            [entry.orderNumber, entry.key, entry.body, entry.openedAt],
        );
        const stored = await this.find(entry.orderNumber);
        if (!stored) throw new Error("The journal did not store the purchase.");
        return stored;
    }

    async find(orderNumber: string): Promise<Entry | undefined> {
        return (await this.select("order_number = $1", [orderNumber]))[0];
    }

    openEntries(): Promise<Entry[]> {
        return this.select("state = 'open'", []);
    }

    boughtEntries(): Promise<Entry[]> {
        return this.select("state = 'bought'", []);
    }

    async beginAttempt(
        orderNumber: string,
        before: number | undefined,
        sentAt: number,
    ): Promise<boolean> {
        const changed = await this.query(
            `UPDATE voucher_purchases SET sent_at = $3
             WHERE order_number = $1 AND state = 'open' AND COALESCE(sent_at, 0) = $2
             RETURNING order_number`,
            [orderNumber, before ?? 0, sentAt],
        );
        return changed.length > 0;
    }

    async settleBought(orderNumber: string, reference: string, total: string): Promise<void> {
        await this.query(
            `UPDATE voucher_purchases
             SET state = 'bought', reference = $2, total = $3, error = NULL
             WHERE order_number = $1 AND state IN ('open', 'refused')`,
            [orderNumber, reference, total],
        );
    }

    async settleRefused(orderNumber: string, sentAt: number, error: Failure): Promise<void> {
        await this.query(
            `UPDATE voucher_purchases SET state = 'refused', error = $3
             WHERE order_number = $1 AND state = 'open' AND sent_at = $2`,
            [orderNumber, sentAt, JSON.stringify(error)],
        );
    }

    async reopen(orderNumber: string, openedAfter: number): Promise<void> {
        await this.query(
            `UPDATE voucher_purchases SET state = 'open', error = NULL, sent_at = NULL
             WHERE order_number = $1 AND state = 'refused' AND opened_at > $2`,
            [orderNumber, openedAfter],
        );
    }

    private async select(condition: string, values: unknown[]): Promise<Entry[]> {
        const statement = `SELECT ${COLUMNS} FROM voucher_purchases
            WHERE ${condition} ORDER BY opened_at`;
        return (await this.query(statement, values)).map(entryFromRow);
    }
}

/** A database of `node:sqlite` or of the package better-sqlite3. */
export interface SqliteDatabase {
    exec(statement: string): unknown;
    prepare(statement: string): {
        all(...values: never[]): unknown[];
        run(...values: never[]): unknown;
    };
}

/**
 * A journal in a file on a local disk:
 * `SqliteJournal.open(new DatabaseSync("purchases.db"))`.
 */
export class SqliteJournal extends SqlJournal {
    private constructor(private readonly database: SqliteDatabase) {
        super();
    }

    static async open(database: SqliteDatabase): Promise<SqliteJournal> {
        // First, because the others fail at once while another program creates the journal.
        database.exec("PRAGMA busy_timeout = 30000");
        database.exec("PRAGMA journal_mode = WAL");
        database.exec("PRAGMA synchronous = FULL");
        const journal = new SqliteJournal(database);
        await journal.createTable();
        return journal;
    }

    protected async query(statement: string, values: unknown[]): Promise<Row[]> {
        const ordered: unknown[] = [];
        const positional = statement.replace(/\$(\d)/g, (_, number: string) => {
            ordered.push(values[Number(number) - 1]);
            return "?";
        });
        const prepared = this.database.prepare(positional);
        if (/^\s*SELECT|RETURNING/.test(statement)) return prepared.all(...(ordered as never[])) as Row[];
        prepared.run(...(ordered as never[]));
        return [];
    }
}

/** A pool or a client of the package pg. */
export interface PostgresConnection {
    query(statement: string, values: unknown[]): Promise<{ rows: Row[] }>;
}

/**
 * A journal in the shop's PostgreSQL database. Give the client a journal of a pool, and `prepare` a
 * journal of the connection whose transaction writes the purchase.
 */
export class PostgresJournal extends SqlJournal {
    constructor(private readonly connection: PostgresConnection) {
        super();
    }

    protected async query(statement: string, values: unknown[]): Promise<Row[]> {
        return (await this.connection.query(statement, values)).rows;
    }
}

function entryFromRow(row: Row): Entry {
    const { reference, total, error } = row as Record<string, string | null>;
    return {
        orderNumber: String(row.order_number),
        key: String(row.idempotency_key),
        body: String(row.body),
        openedAt: Number(row.opened_at),
        state: row.state as Entry["state"],
        ...(reference ? { reference } : {}),
        ...(total ? { total } : {}),
        ...(error ? { error: JSON.parse(error) as Failure } : {}),
        ...(row.sent_at === null ? {} : { sentAt: Number(row.sent_at) }),
    };
}
