-- How the hot tables of this app are stored.

-- Every purchase updates its wallet. Free space on the page keeps the update there (HOT: it touches
-- no index). Frequent vacuuming removes old row versions before long snapshots turn them into a
-- chain.
ALTER TABLE wallets_wallet SET (
    fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);

-- The ledger is append-only: nothing to clean, but rows to freeze. Freeze a few often, not all at
-- once.
ALTER TABLE wallets_ledgerentry SET (
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);
