const WINDOW = 60; // seconds
const READS_SHARE = 0.8; // of the limit; the rest is left for purchases

/** Keeps a program within its limit of requests per minute. Purchases go before reads. */
export class Pace {
    limit: number | undefined;
    private readonly sent: number[] = [];
    private readonly waitingPurchases = new Set<object>();
    private blockedUntil = 0;

    /**
     * 0 if the request may be sent now, which counts it; otherwise the seconds to wait. `token`
     * names the request, so that reads wait while a purchase does.
     */
    ask(token: object, isPurchase: boolean, now: number): number {
        const wait = this.wait(isPurchase, now);
        if (wait > 0) {
            if (isPurchase) this.waitingPurchases.add(token);
            return wait;
        }
        this.waitingPurchases.delete(token);
        this.sent.push(now);
        return 0;
    }

    /** The request will not be sent. */
    forget(token: object): void {
        this.waitingPurchases.delete(token);
    }

    /** No request before this time: the service has answered rate_limited. */
    block(until: number): void {
        this.blockedUntil = Math.max(this.blockedUntil, until);
    }

    private wait(isPurchase: boolean, now: number): number {
        if (now < this.blockedUntil) return this.blockedUntil - now;
        while (this.sent[0] !== undefined && this.sent[0] <= now - WINDOW) this.sent.shift();
        if (this.limit === undefined) return 0;
        const allowed = isPurchase
            ? this.limit
            : Math.max(1, Math.floor(this.limit * READS_SHARE));
        const first = this.sent[this.sent.length - allowed];
        if (first !== undefined) return first + WINDOW - now;
        return this.waitingPurchases.size > 0 && !isPurchase ? 0.05 : 0;
    }
}
