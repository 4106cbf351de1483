-- Finds a request record by its request id, order reference or idempotency key.
--
-- Each record is written once and seldom looked for. B-trees of random values would cost more than
-- the rows themselves. A BRIN index of Bloom filters costs next to nothing to write: it names the
-- groups of 32 pages that may hold a value, and PostgreSQL reads only those. Autovacuum summarises
-- new groups; until then they are read (docs/decisions/0054-request-records.md).
CREATE INDEX accounts_request_found ON accounts_requestrecord USING brin (
    request_id uuid_bloom_ops (n_distinct_per_range = 1500),
    order_reference text_bloom_ops (n_distinct_per_range = 1500),
    idempotency_key text_bloom_ops (n_distinct_per_range = 1500)
) WITH (pages_per_range = 32, autosummarize = on);
