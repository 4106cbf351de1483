/**
 * Decides what to do after each event of a purchase. It sends, waits, stores and reads nothing.
 * Its rules are those of the Python library.
 */
import type { Data, Failure, Reply } from "./wire.js";

/** How long to wait, in seconds. */
export interface Rules {
    /** For an outcome, from the first attempt. */
    readonly patience: number;
    /** For request_in_progress, from the first of them. */
    readonly progressPatience: number;
    readonly firstPause: number;
    readonly longestPause: number;
    readonly progressPause: number;
    /** After a 429 that is not the service's. */
    readonly crowdPause: number;
    /** A later request with the same key could buy again: the service forgets it after a day. */
    readonly keyLifetime: number;
    /**
     * An attempt without a response may still arrive and buy: a proxy may hold it for 60 seconds,
     * and the service works on it for 30.
     */
    readonly attemptLifetime: number;
}

export const RULES: Rules = {
    patience: 60,
    progressPatience: 360,
    firstPause: 0.5,
    longestPause: 30,
    progressPause: 5,
    crowdPause: 30,
    keyLifetime: 23 * 3600,
    attemptLifetime: 90,
};

/**
 * The state of a purchase that is not settled. `doubt`: an attempt may have bought. `lateUntil`:
 * until then, such an attempt may still arrive. `sent`: when the last attempt was sent.
 * `reference`: the order exists, and only has to be read.
 */
export interface State {
    readonly started: number;
    readonly keyEnds: number;
    readonly doubt: boolean;
    readonly lateUntil: number;
    readonly sent: number;
    readonly reference?: string;
    readonly tries: number;
    readonly progressSince?: number;
}

export type Event = { readonly kind: "begin" } | Reply;

export type Action =
    | { readonly kind: "send"; readonly after: number }
    | { readonly kind: "read"; readonly reference: string; readonly after: number }
    | { readonly kind: "bought"; readonly data: Data }
    | { readonly kind: "refused"; readonly error: Failure }
    | { readonly kind: "open"; readonly error?: Failure };

export interface Circumstances {
    /** Seconds of a clock that never goes back. */
    readonly now: number;
    /** A random number from 0 to 1, for the jitter. */
    readonly chance: number;
    readonly rules: Rules;
}

/**
 * The service refuses with these after it has looked at the key, or because the same text can never
 * buy. So nothing was bought until then.
 */
const FINAL: ReadonlySet<string> = new Set([
    "order_refused",
    "validation_failed",
    "variation_mismatch",
    "product_reference_not_found",
    "product_reference_ambiguous",
]);

type Decision = readonly [State, Action];

export function decide(state: State, event: Event, at: Circumstances): Decision {
    if (event.kind === "begin") {
        if (at.now >= state.keyEnds) return [state, { kind: "open" }];
        return [{ ...state, sent: at.now }, { kind: "send", after: 0 }];
    }
    if (event.kind === "success" && isOrder(event.data, event.status, state)) {
        return [state, { kind: "bought", data: event.data }];
    }
    const { status } = event;
    if (event.kind === "refusal" && status >= 400 && status < 500 && status !== 408) {
        return afterRefusal(state, event.error, status, at);
    }
    if (event.kind === "foreign" && event.isUnreachable) return [state, { kind: "open" }];
    const pause =
        status === 429
            ? at.rules.crowdPause * (1 + at.chance / 4)
            : backoff(state.tries, at);
    return again(inDoubt(state, at), pause, at);
}

function afterRefusal(state: State, error: Failure, status: number, at: Circumstances): Decision {
    const { code } = error;
    if (code === "rate_limited" || status === 429) {
        return again(state, limited(error, at), at, error);
    }
    if (state.reference !== undefined) return [state, { kind: "open", error }];
    if (code === "request_abandoned") {
        const { reference } = error;
        if (!reference) return [{ ...state, doubt: true }, { kind: "open", error }];
        return [
            { ...state, doubt: true, reference, tries: 0 },
            { kind: "read", reference, after: 0 },
        ];
    }
    if (code === "request_in_progress") {
        const progressSince = state.progressSince ?? at.now;
        const pause = at.rules.progressPause * (1 + at.chance / 4);
        return again({ ...inDoubt(state, at), progressSince }, pause, at, error);
    }
    if (FINAL.has(code)) {
        if (state.sent >= state.lateUntil) return [state, { kind: "refused", error }];
        // A refusal does not bind the key, so an earlier attempt that still arrives could buy.
        return again(state, (state.lateUntil - at.now) * (1 + at.chance / 10), at, error);
    }
    // Any other refusal says nothing about earlier attempts.
    if (state.doubt || code === "idempotency_key_reused") return [state, { kind: "open", error }];
    return [state, { kind: "refused", error }];
}

function again(state: State, pause: number, at: Circumstances, error?: Failure): Decision {
    let ends = state.started + at.rules.patience;
    if (state.progressSince !== undefined) {
        ends = Math.max(ends, state.progressSince + at.rules.progressPatience);
    }
    const next = { ...state, tries: state.tries + 1 };
    const open: Action = error ? { kind: "open", error } : { kind: "open" };
    if (at.now + pause > ends) return [next, open];
    if (next.reference !== undefined) {
        return [next, { kind: "read", reference: next.reference, after: pause }];
    }
    if (at.now + pause >= next.keyEnds) return [next, open];
    return [{ ...next, sent: at.now + pause }, { kind: "send", after: pause }];
}

function inDoubt(state: State, at: Circumstances): State {
    return { ...state, doubt: true, lateUntil: at.now + at.rules.attemptLifetime };
}

/** After a read: the seconds to wait before the next attempt, or undefined to stop. */
export function pauseAfterRead(
    tries: number,
    reply: Reply,
    waited: number,
    at: Circumstances,
): number | undefined {
    if (reply.kind === "success") return undefined;
    if (reply.kind === "foreign" && reply.isUnreachable) return undefined;
    const { status } = reply;
    let pause = backoff(tries, at);
    if (status === 429) {
        pause =
            reply.kind === "refusal"
                ? limited(reply.error, at)
                : at.rules.crowdPause * (1 + at.chance / 4);
    } else if (reply.kind === "refusal" && status < 500 && status !== 408) {
        return undefined;
    }
    return waited + pause <= at.rules.patience ? pause : undefined;
}

function limited(error: Failure, at: Circumstances): number {
    return Math.max(1, error.retry_after_seconds ?? 30) * (1 + at.chance / 10);
}

/** Between half of and the whole of a time that doubles with each attempt. */
function backoff(tries: number, { rules, chance }: Circumstances): number {
    const whole = Math.min(rules.longestPause, rules.firstPause * 2 ** Math.min(tries, 16));
    return whole * (0.5 + chance / 2);
}

function isOrder(data: Data, status: number, state: State): boolean {
    if (state.reference !== undefined) {
        return status === 200 && data.reference === state.reference;
    }
    return status === 201 && typeof data.reference === "string";
}
