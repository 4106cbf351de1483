-- How the hot tables of this app are stored.

-- Django adds an index for LIKE 'prefix%' to every unique text column. References are looked up
-- whole, so nothing would read it.
DROP INDEX IF EXISTS orders_order_reference_d902bed1_like;

-- Every purchase updates its client's counter. Free space on the page keeps the update there (HOT:
-- it touches no index). Frequent vacuuming removes old row versions before long snapshots turn them
-- into a chain.
ALTER TABLE orders_clientcounter SET (
    fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);

-- Orders are append-only: nothing to clean, but rows to freeze. Freeze a few often, not all at once.
ALTER TABLE orders_order SET (
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);
