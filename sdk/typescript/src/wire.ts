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
    | { readonly kind: "refusal"; readonly status: number; readonly error: Failure }
    | { readonly kind: "foreign"; readonly status: number };

export type Data = Readonly<Record<string, unknown>>;

export const NO_REPLY: Reply = { kind: "foreign", status: 0 };

/** The reply in a complete response. */
export function readReply(status: number, text: string): Reply {
    let answer: unknown;
    try {
        answer = parseJson(text);
    } catch {
        return { kind: "foreign", status };
    }
    if (isObject(answer)) {
        const { success, data, error } = answer;
        if (success === true && isObject(data) && (status === 200 || status === 201)) {
            return { kind: "success", status, data };
        }
        if (success === false && isObject(error) && typeof error.code === "string") {
            if (status >= 400) {
                return { kind: "refusal", status, error: error as unknown as Failure };
            }
        }
    }
    return { kind: "foreign", status };
}

function isObject(value: unknown): value is Record<string, unknown> {
    return (
        typeof value === "object" &&
        value !== null &&
        !Array.isArray(value) &&
        !(value instanceof Decimal)
    );
}
