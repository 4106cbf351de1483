import { inspect } from "node:util";

import type { Decimal } from "./decimal.js";
import type { Data, Failure, LastReply } from "./wire.js";

export type OrderStatus = "pending" | "completed" | "failed" | (string & {});

/** A voucher code. Logs, `util.inspect` and `JSON.stringify` show nothing of it. */
export class Code {
    readonly #code: string;
    readonly #serialNumber: string | undefined;
    readonly #pinCode: string | undefined;

    constructor(data: { code: string; serial_number?: string; pin_code?: string }) {
        this.#code = data.code;
        this.#serialNumber = data.serial_number;
        this.#pinCode = data.pin_code;
    }

    get code(): string {
        return this.#code;
    }

    get serialNumber(): string | undefined {
        return this.#serialNumber;
    }

    get pinCode(): string | undefined {
        return this.#pinCode;
    }

    toJSON(): string {
        return "[hidden]";
    }

    [inspect.custom](): string {
        return "Code [hidden]";
    }
}

interface OrderFields {
    readonly reference: string;
    readonly status: OrderStatus;
    readonly quantity: number;
    readonly units: number;
    readonly units_per_sale: number;
    readonly unit_price: Decimal;
    readonly total_price: Decimal;
    readonly currency: string;
    readonly created_at: string | null;
}

export interface VoucherOrder extends OrderFields {
    readonly kind: "voucher";
    readonly product_id: number;
    readonly variation_id: number | null;
    readonly merchant_reference: string | null;
    readonly codes: readonly Code[];
}

export interface TopUpOrder extends OrderFields {
    readonly kind: "top_up";
    readonly system_product_id: number;
    readonly player_id: string;
    readonly fulfilment_status: string;
    readonly refunded: boolean;
    readonly failure_reason: string | null;
}

export type Order = VoucherOrder | TopUpOrder;

/**
 * `bought`: debited once. `refused`: not debited. `unknown`: perhaps debited; keep the order open,
 * remove the cause in `error`, and call `resume`.
 */
export type Outcome =
    | { readonly kind: "bought"; readonly orderNumber: string; readonly order: Order }
    | { readonly kind: "refused"; readonly orderNumber: string; readonly error: Failure }
    | {
          readonly kind: "unknown";
          readonly orderNumber: string;
          readonly error?: Failure;
          readonly reference?: string;
          /** What the last attempt received; missing if nothing was sent. */
          readonly last?: LastReply;
      };

export interface Variation {
    readonly id: number;
    readonly name: string;
    readonly merchant_reference: string | null;
    readonly available_stock: number;
    readonly price: Decimal | null;
    readonly quantity_step: number;
    readonly sellable: boolean;
}

export interface Product extends Variation {
    readonly type: string | null;
    readonly currency: string;
    readonly in_stock: boolean;
    readonly variations: readonly Variation[];
}

export interface TopUpProduct {
    readonly id: number;
    readonly name: string;
    readonly category: string | null;
    readonly price: Decimal;
    readonly currency: string;
    readonly available_stock: number | null;
    readonly sellable: boolean;
    readonly fields: readonly {
        readonly id: number;
        readonly name: string;
        readonly label: string;
        readonly type: string;
        readonly required: boolean;
        readonly options: readonly { readonly value: string; readonly label: string | null }[];
    }[];
}

export interface Ping {
    readonly client: string;
    readonly server_time: string;
    readonly rate_limit_per_minute: number;
}

export interface Balance {
    readonly balance: Decimal;
    readonly currency: string;
}

/** A top-up has a delivery_type; an order of voucher codes has none. */
export function orderFromData(data: Data): Order {
    const { codes, delivery_type: delivery, ...rest } = data;
    if (delivery === "top_up") return { ...rest, kind: "top_up" } as unknown as TopUpOrder;
    const hidden = (codes as ConstructorParameters<typeof Code>[0][]).map((code) => new Code(code));
    return { ...rest, kind: "voucher", codes: hidden } as unknown as VoucherOrder;
}
