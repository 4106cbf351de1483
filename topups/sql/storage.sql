-- How the hot tables of this app are stored.

-- Django adds an index for LIKE 'prefix%' to every unique text column. References are looked up
-- whole, so nothing would read it.
DROP INDEX IF EXISTS topups_fulfilment_order_reference_f2ff2bc3_like;

-- Every purchase of a product with counted stock updates its row. Free space on the page keeps the
-- update there (HOT: it touches no index).
ALTER TABLE topups_topupproduct SET (
    fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);
