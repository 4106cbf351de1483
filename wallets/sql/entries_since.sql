-- Returns the id of a wallet's first entry at or after p_moment, or the next id if there is none.
--
-- A binary search over ids: about forty reads of the index (wallet_id, id), which statements use
-- anyway. An index on created_at would cost every purchase.
--
-- The result is only near the moment. An entry gets its time when its transaction starts, but its
-- id when it gets the wallet's lock, so times and ids may disagree by the length of a transaction.
-- Callers pass a moment well before or after the one they mean, and compare times themselves.
--
-- ORDER BY wallet_id, id: ordered by id alone, the planner may walk the primary key past the
-- entries of all other wallets.
CREATE OR REPLACE FUNCTION wallets_entries_since(p_wallet bigint, p_moment timestamptz)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    low bigint;
    high bigint;
    middle bigint;
    entry record;
BEGIN
    SELECT id INTO low FROM wallets_ledgerentry
     WHERE wallet_id = p_wallet ORDER BY wallet_id, id LIMIT 1;
    SELECT id + 1 INTO high FROM wallets_ledgerentry
     WHERE wallet_id = p_wallet ORDER BY wallet_id DESC, id DESC LIMIT 1;
    WHILE low < high LOOP
        middle := low + (high - low) / 2;
        SELECT wallet_id, id, created_at INTO entry FROM wallets_ledgerentry
         WHERE (wallet_id, id) >= (p_wallet, middle) ORDER BY wallet_id, id LIMIT 1;
        IF entry.wallet_id = p_wallet AND entry.id < high AND entry.created_at < p_moment THEN
            low := entry.id + 1;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    RETURN coalesce(low, 1);
END $$;
