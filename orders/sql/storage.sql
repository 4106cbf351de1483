-- Storage of the hot tables of this app (docs/performance.md).

-- Django adds an index for LIKE 'prefix%' to every unique text column. Order references are only
-- looked up whole, so no query would use it.
DROP INDEX IF EXISTS orders_order_reference_d902bed1_like;

-- Every purchase updates its client's counter. With free space on the page, the new row version
-- stays there and no index changes (HOT). Frequent vacuuming removes old row versions, which would
-- otherwise form long chains while a long snapshot is open.
ALTER TABLE orders_clientcounter SET (
    fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);

-- Orders are append-only: vacuum has no dead rows to remove, only rows to freeze. Frequent runs
-- freeze a few rows each.
ALTER TABLE orders_order SET (
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);
