-- What the database does for a purchase: the four calls of the service, with its constraints and
-- triggers. There is no HTTP, no Python, no rate limit and no encryption.
--
-- The key's digest is left out, so nothing is looked up with the key.

\set client random(1, 100)
\set product random(1, 50)
\set seed random(1, 1000000000000000000)

-- 0 API key
SELECT client_id FROM orders_find_key_and_success(
    (SELECT prefix FROM accounts_apikey WHERE client_id = :client), '', md5(:seed::text));

-- 1 claim
SELECT record_id AS record, attempt FROM idempotency_claim(
    :client, md5(:seed::text), sha256('{"product_id": 1, "quantity": 1}'), 300) \gset

-- 2 purchase
SELECT sealed_codes FROM orders_purchase_vouchers(
    :record, :attempt, lpad(:record::text, 26, '0'), :client, :client, :product, NULL, NULL, 1,
    decode(:keys, 'hex'), decode(repeat('5e', 32), 'hex'));

-- 3 store
SELECT stored FROM idempotency_store_response(
    :record, :attempt, decode(repeat('5e', 440), 'hex'));
