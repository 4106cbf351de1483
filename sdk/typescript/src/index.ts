export { advice } from "./advise.js";
export type { Advice } from "./advise.js";
export {
    ApiError,
    Client,
    NotInJournal,
    OrderNumberTaken,
    ReferenceNotFound,
    Unavailable,
} from "./client.js";
export type {
    BuyOptions,
    CallOptions,
    Catalogue,
    LogEvent,
    Options,
    Purchase,
    TopUpPurchase,
    VoucherPurchase,
} from "./client.js";
export { decide, RULES } from "./core.js";
export type { Action, Circumstances, Event, Rules, State } from "./core.js";
export { Decimal } from "./decimal.js";
export { MemoryJournal, PostgresJournal, SqliteJournal } from "./journal.js";
export type { Entry, Journal, PostgresConnection, SqliteDatabase } from "./journal.js";
export { Code } from "./models.js";
export type {
    Balance,
    Order,
    OrderStatus,
    Outcome,
    Ping,
    Product,
    TopUpOrder,
    TopUpProduct,
    Variation,
    VoucherOrder,
} from "./models.js";
export type { Period, Reconciliation } from "./reconciling.js";
export type { ErrorCode, Failure, LastReply, RefusalReason } from "./wire.js";
