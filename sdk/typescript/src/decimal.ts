import { randomUUID } from "node:crypto";

/** An exact amount. JavaScript's numbers cannot hold every amount exactly. */
export class Decimal {
    private constructor(
        private readonly digits: bigint,
        private readonly places: number,
    ) {}

    /** Reads `12`, `-0.10` or `1e-7`. Throws RangeError for anything else. */
    static from(text: string): Decimal {
        const match = /^(-?\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/.exec(text);
        if (!match) throw new RangeError("This is not a decimal number.");
        const fraction = match[2] ?? "";
        const places = fraction.length - Number(match[3] ?? 0);
        const digits = BigInt(match[1] + fraction);
        return places < 0
            ? new Decimal(digits * 10n ** BigInt(-places), 0)
            : new Decimal(digits, places);
    }

    plus(other: Decimal): Decimal {
        const places = Math.max(this.places, other.places);
        return new Decimal(this.at(places) + other.at(places), places);
    }

    minus(other: Decimal): Decimal {
        return this.plus(new Decimal(-other.digits, other.places));
    }

    times(whole: number | bigint): Decimal {
        return new Decimal(this.digits * BigInt(whole), this.places);
    }

    /** Negative, 0 or positive, as for `Array.prototype.sort`. */
    compare(other: Decimal): number {
        const places = Math.max(this.places, other.places);
        const difference = this.at(places) - other.at(places);
        return difference < 0n ? -1 : difference > 0n ? 1 : 0;
    }

    equals(other: Decimal): boolean {
        return this.compare(other) === 0;
    }

    toString(): string {
        const sign = this.digits < 0n ? "-" : "";
        const text = String(this.digits < 0n ? -this.digits : this.digits);
        const padded = text.padStart(this.places + 1, "0");
        const whole = padded.slice(0, padded.length - this.places);
        return sign + (this.places ? `${whole}.${padded.slice(-this.places)}` : whole);
    }

    toJSON(): string {
        return this.toString();
    }

    private at(places: number): bigint {
        return this.digits * 10n ** BigInt(places - this.places);
    }
}

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MONEY = new Set(["price", "unit_price", "total_price", "balance", "amount", "balance_after"]);

/** Parses JSON. Amounts become Decimal, and other numbers become numbers. */
export function parseJson(text: string): unknown {
    const mark = `${randomUUID()}:`;
    const marked = text.replace(TOKENS, (token) =>
        token.startsWith('"') ? token : `"${mark}${token}"`,
    );
    return JSON.parse(marked, (name, value: unknown) => {
        if (typeof value !== "string" || !value.startsWith(mark)) return value;
        const number = value.slice(mark.length);
        return MONEY.has(name) ? Decimal.from(number) : Number(number);
    });
}
