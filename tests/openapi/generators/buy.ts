// Buys with the client that hey-api has made. Reads {baseUrl, apiKey, purchases} from standard
// input, and prints the orders.
import { readFileSync } from "node:fs";

import { createOrder, getOrder, type Order, type PurchaseRequest } from "./hey";
import { client } from "./hey/client.gen";

interface Given {
    baseUrl: string;
    apiKey: string;
    purchases: Record<string, PurchaseRequest>;
}

async function main(): Promise<void> {
    const given = JSON.parse(readFileSync(0, "utf8")) as Given;
    client.setConfig({ baseUrl: given.baseUrl, auth: given.apiKey });
    const orders: Order[] = [];
    for (const [key, body] of Object.entries(given.purchases)) {
        const bought = await createOrder({ body, headers: { "Idempotency-Key": key }, throwOnError: true });
        const { reference } = bought.data.data;
        const read = await getOrder({ path: { reference }, throwOnError: true });
        orders.push(read.data.data);
    }
    console.log(JSON.stringify(orders));
}

void main();
