-- Where in a wallet's entries, which are in the order of their ids, a moment lies: the id from which
-- on entries were made at or after it. Found by halving, in some forty looks at the index that pages
-- of a statement use anyway: an index on the time would cost every purchase.
--
-- An entry's time is that of its transaction's beginning, its id that of its turn at the wallet; so
-- close to the moment the two may disagree by as long as a transaction lasts. Callers ask for a
-- moment well before or after the one they mean, and compare times themselves.
--
-- Only the index (wallet_id, id) serves the order by both: left to choose, the planner may walk the
-- primary key past every other wallet's entries.
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
