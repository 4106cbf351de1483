// Written by `make sdk` from the documentation.
export const table: { codes: Record<string, { charged: string; act: string } | undefined>; reasons: Record<string, { charged: string; act: string } | undefined> } = {
  "codes": {
    "missing_token": {
      "charged": "no, not by this request",
      "act": "Send the Authorization header with every request."
    },
    "invalid_token": {
      "charged": "no, not by this request",
      "act": "Use another API key of the same client: this one is mistyped or revoked, or was replaced and has expired."
    },
    "client_disabled": {
      "charged": "no, not by this request",
      "act": "Stop: the client or the account is switched off. Ask an owner, then support."
    },
    "ip_not_allowed": {
      "charged": "no, not by this request",
      "act": "Call from an address on the client's allowlist, or add your address to it."
    },
    "rate_limited": {
      "charged": "no, not by this request",
      "act": "Wait error.retry_after_seconds seconds, then send the same request with the same idempotency key."
    },
    "client_without_wallet": {
      "charged": "no",
      "act": "Stop: the account has no wallet. Contact support."
    },
    "idempotency_key_required": {
      "charged": "no, not by this request",
      "act": "Fix the program: send one Idempotency-Key with each purchase, in ASCII characters without a comma, such as your own order number or a UUID."
    },
    "idempotency_key_too_long": {
      "charged": "no, not by this request",
      "act": "Fix the program: an idempotency key has at most 128 bytes."
    },
    "idempotency_key_reused": {
      "charged": "no, not by this request",
      "act": "Fix the program: this idempotency key belongs to a purchase with other content. Find out which purchase you meant before you send another request."
    },
    "request_in_progress": {
      "charged": "unknown",
      "act": "Wait a few seconds, then send the same request with the same idempotency key. Repeat this: you may get this response for some minutes."
    },
    "request_abandoned": {
      "charged": "yes, once",
      "act": "Do not buy again. Read the order with GET /orders/{error.reference}. If it is not found, a restore of the service's database lost it: keep the codes that you received, and contact support with the reference."
    },
    "validation_failed": {
      "charged": "no",
      "act": "Fix the request: error.fields says where. You may keep the idempotency key."
    },
    "variation_mismatch": {
      "charged": "no",
      "act": "Fix the request: take product and variation from one item of GET /products."
    },
    "product_not_found": {
      "charged": "no",
      "act": "Stop offering the product: it is unknown or switched off."
    },
    "product_reference_not_found": {
      "charged": "no",
      "act": "Fix the reference, or link error.merchant_reference to a product or variation on the References page."
    },
    "product_reference_ambiguous": {
      "charged": "no",
      "act": "Send product_id or merchant_reference, not both. If you send merchant_reference, omit variation_id."
    },
    "order_not_found": {
      "charged": "no",
      "act": "Check the reference, and use an API key of the client that bought the order. Other clients cannot read it."
    },
    "order_refused": {
      "charged": "no",
      "act": "See error.reason in the next table. Without a reason, do not retry automatically: contact support."
    },
    "server_error": {
      "charged": "unknown",
      "act": "Wait, then send the same request with the same idempotency key. Repeat until the response is not a 5xx, for at most one day."
    }
  },
  "reasons": {
    "product_inactive": {
      "charged": "no",
      "act": "Do not retry: the product is switched off. Stop offering it."
    },
    "quantity_step": {
      "charged": "no",
      "act": "Send another quantity: a multiple of the product's quantity_step."
    },
    "price_unavailable": {
      "charged": "no",
      "act": "If the product has variations, send the variation_id of one. Otherwise do not retry: the product has no price. Contact support."
    },
    "client_without_wallet": {
      "charged": "no",
      "act": "Do not retry: the account has no wallet. Contact support."
    },
    "insufficient_stock": {
      "charged": "no",
      "act": "If the product has variations, send the variation_id of one that has codes. Otherwise send the same request later, with the same idempotency key."
    },
    "insufficient_balance": {
      "charged": "no",
      "act": "If error.message names the spending limit, ask an owner to raise it; otherwise add money to the wallet. Then send the same request with the same idempotency key."
    }
  }
};
