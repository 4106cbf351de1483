import { table } from "./advice.js";
import type { Failure } from "./wire.js";

/** What the documentation says about a code or a reason. */
export interface Advice {
    /** Whether the wallet was debited. */
    readonly charged: string;
    /** What to do. */
    readonly act: string;
}

/** The advice for the reason, or else for the code; undefined if this version knows neither. */
export function advice({ code, reason }: Failure): Advice | undefined {
    return (reason ? table.reasons[reason] : undefined) ?? table.codes[code];
}
