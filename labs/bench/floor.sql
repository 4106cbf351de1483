-- The limit: the writes of one purchase and nothing else. There is no HTTP, no Python, no API key,
-- no rate limit and no encryption. Each statement is prepared and takes one round trip.
--
-- Commits are as durable as in the service: the purchase waits for the disk; the claim and the
-- stored response do not.

\set client random(1, 100)
\set shelf random(1, 50)

-- 1 claim
WITH lazy AS (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO idempotency_idempotencyrecord (client_id, key, fingerprint, attempt)
SELECT :client, gen_random_uuid()::text, sha256('{"product_id": 1, "quantity": 1}'), 1 FROM lazy
ON CONFLICT (client_id, key) DO NOTHING
RETURNING id AS record \gset

-- 2 purchase
BEGIN;
UPDATE idempotency_idempotencyrecord
   SET order_reference = lpad(:record::text, 26, '0'), bought_at = clock_timestamp()
 WHERE id = :record AND attempt = 1 AND order_reference IS NULL;
SELECT shelf.price AS price, nextval('orders_order_id_seq') AS new_order
  FROM catalogue_shelf shelf JOIN catalogue_product product ON product.id = shelf.product_id
 WHERE shelf.id = :shelf AND product.active \gset
UPDATE catalogue_shelf SET available_stock = available_stock - 1
 WHERE id = :shelf AND available_stock >= 1;
-- Only the index of codes in stock can serve ORDER BY position. Another order would scan sold codes.
WITH next_code AS (
    SELECT id FROM catalogue_vouchercode
     WHERE shelf_id = :shelf AND order_id IS NULL AND hold_id IS NULL ORDER BY position LIMIT 1 FOR UPDATE
)
UPDATE catalogue_vouchercode code SET order_id = :new_order
  FROM next_code WHERE code.id = next_code.id
RETURNING code.sealed;
UPDATE wallets_wallet SET balance = balance - :price
 WHERE account_id = :client AND balance >= :price RETURNING balance AS balance \gset
INSERT INTO wallets_ledgerentry
    (wallet_id, kind, counterpart, amount, balance_after, order_reference, actor, chain)
VALUES (:client, 'purchase', 'sales', -(:price::numeric), :balance, lpad(:record::text, 26, '0'),
        'client', '');
INSERT INTO orders_clientcounter AS counter (client_id, orders) VALUES (:client, 1)
ON CONFLICT (client_id) DO UPDATE SET orders = counter.orders + 1
RETURNING orders AS number \gset
INSERT INTO orders_order
    (id, reference, client_id, number, shelf_id, quantity, units_per_sale, unit_price, total_price,
     currency, codes_mac)
VALUES (:new_order, lpad(:record::text, 26, '0'), :client, :number, :shelf, 1, 1, :price, :price,
        'USD', decode(repeat('5e', 32), 'hex'));
END;

-- 3 store
WITH lazy AS (SELECT set_config('synchronous_commit', 'off', true))
UPDATE idempotency_idempotencyrecord SET response = decode(repeat('5e', 440), 'hex')
  FROM lazy WHERE id = :record AND attempt = 1;
