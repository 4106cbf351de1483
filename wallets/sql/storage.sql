-- Storage of the hot tables of this app (docs/performance.md).

-- Every purchase updates its wallet. With free space on the page, the new row version stays there
-- and no index changes (HOT). Frequent vacuuming removes old row versions, which would otherwise
-- form long chains while a long snapshot is open.
ALTER TABLE wallets_wallet SET (
    fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);

-- The ledger is append-only: vacuum has no dead rows to remove, only rows to freeze. Frequent runs
-- freeze a few rows each.
ALTER TABLE wallets_ledgerentry SET (
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);
