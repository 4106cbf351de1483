import { Decimal, parseJson } from "./decimal.js";

/** The codes of the API. Later versions of the service may have others. */
export type ErrorCode =
    | "missing_token"
    | "invalid_token"
    | "client_disabled"
    | "ip_not_allowed"
    | "rate_limited"
    | "client_without_wallet"
    | "idempotency_key_required"
    | "idempotency_key_too_long"
    | "idempotency_key_reused"
    | "request_in_progress"
    | "request_abandoned"
    | "validation_failed"
    | "variation_mismatch"
    | "product_not_found"
    | "product_reference_not_found"
    | "product_reference_ambiguous"
    | "order_not_found"
    | "order_refused"
    | "server_error"
    | (string & {});

/** Why an order was refused. Later versions of the service may have other reasons. */
export type RefusalReason =
    | "insufficient_stock"
    | "insufficient_balance"
    | "quantity_step"
    | "product_inactive"
    | "price_unavailable"
    | "client_without_wallet"
    | (string & {});

/** An error of the service: `{success: false, error}`. */
export interface Failure {
    readonly code: ErrorCode;
    readonly message: string;
    readonly reason?: RefusalReason | null;
    readonly reference?: string;
    readonly merchant_reference?: string;
    readonly retry_after_seconds?: number;
    readonly fields?: Readonly<Record<string, unknown>>;
}

/** An HTTP request below the base URL, without the API key. */
export interface Request {
    readonly method: "GET" | "POST";
    readonly path: string;
    readonly body?: string;
    readonly idempotencyKey?: string;
}

/**
 * A reply. `foreign` is anything that is not the service's own JSON: no complete response
 * (status 0), or a page or JSON of a proxy.
 */
export type Reply =
    | { readonly kind: "success"; readonly status: number; readonly data: Data }
    | {
          readonly kind: "refusal";
          readonly status: number;
          readonly error: Failure;
          readonly requestId?: string;
      }
    | {
          readonly kind: "foreign";
          readonly status: number;
          readonly cause?: string;
          readonly requestId?: string;
          /** Nothing was sent, and waiting does not help: the host or its certificate is wrong. */
          readonly isUnreachable?: boolean;
      };

export type Data = Readonly<Record<string, unknown>>;

/** The reply in a complete response. */
export function readReply(status: number, text: string, requestId?: string): Reply {
    const named = requestId === undefined ? {} : { requestId };
    const cause = "the response is not the service's own";
    const foreign: Reply = { kind: "foreign", status, cause, ...named };
    let answer: unknown;
    try {
        answer = parseJson(text);
    } catch {
        return foreign;
    }
    if (isObject(answer)) {
        const { success, data, error } = answer;
        if (success === true && isObject(data) && (status === 200 || status === 201)) {
            return { kind: "success", status, data };
        }
        if (success === false && isObject(error) && typeof error.code === "string") {
            if (status >= 400) {
                return { kind: "refusal", status, error: error as unknown as Failure, ...named };
            }
        }
    }
    return foreign;
}

/** What the last attempt received. `status` is 0 without a response; tell `requestId` to support. */
export interface LastReply {
    readonly status: number;
    readonly cause: string;
    readonly requestId?: string;
}

export function lastReply(reply: Exclude<Reply, { kind: "success" }>): LastReply {
    return {
        status: reply.status,
        cause: reply.kind === "refusal" ? reply.error.code : (reply.cause ?? ""),
        ...(reply.requestId === undefined ? {} : { requestId: reply.requestId }),
    };
}

/** Whether two texts of JSON differ at most in the order of their fields. */
export function isSameContent(text: string, other: string): boolean {
    return sorted(text) === sorted(other);
}

function sorted(text: string): string {
    return JSON.stringify(JSON.parse(text), (_, value: unknown) =>
        isObject(value) ? Object.fromEntries(Object.entries(value).sort()) : value,
    );
}

function isObject(value: unknown): value is Record<string, unknown> {
    return (
        typeof value === "object" &&
        value !== null &&
        !Array.isArray(value) &&
        !(value instanceof Decimal)
    );
}
