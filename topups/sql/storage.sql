-- Storage of the hot tables of this app (docs/performance.md).

-- Django adds an index for LIKE 'prefix%' to every unique text column. Order references are only
-- looked up whole, so no query would use it.
DROP INDEX IF EXISTS topups_fulfilment_order_reference_f2ff2bc3_like;

-- Every purchase of a product with counted stock updates its row. With free space on the page, the
-- new row version stays there and no index changes (HOT).
ALTER TABLE topups_topupproduct SET (
    fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);
