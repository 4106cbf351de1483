-- The chain of a wallet's entries: each entry carries a hash over the hash of the entry before and
-- its own fields (docs/decisions/0051-hash-chain.md). wallets/evidence/chain.py computes the same
-- hashes in Python, and merchants/snippets/verify_statement.py what a merchant can see of them.
--
-- PostgreSQL inlines these functions: they are STABLE, as convert_to and to_char are, and each is
-- one expression. Called one by one, they would cost a purchase 3 %.

-- A text with its length in bytes in front, so that no two lists of texts look alike: `3:abc`, and
-- `-` for NULL.
CREATE OR REPLACE FUNCTION wallets_counted(p_text text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(octet_length(p_text)::text || ':' || p_text, '-')
$$;

-- What a merchant sees of an entry, except the balance after it. Money has four decimals. The time
-- is in UTC.
CREATE OR REPLACE FUNCTION wallets_shown_fields(
    p_wallet bigint, p_kind text, p_counterpart text, p_amount numeric, p_created_at timestamptz,
    p_order_reference text, p_note text
) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT 'voucher entry v1|' || p_wallet::text || '|' || p_kind || '|' || p_counterpart || '|'
        || p_amount::text || '|'
        || to_char(p_created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '|'
        || wallets_counted(p_order_reference) || '|'
        || wallets_counted(CASE p_kind WHEN 'credit' THEN p_note ELSE '' END)
$$;

-- The hash of what the merchant does not see, as hexadecimal text.
CREATE OR REPLACE FUNCTION wallets_hidden_hash(
    p_salt uuid, p_actor text, p_booking_reference text, p_note text
) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT encode(sha256(convert_to(
        wallets_counted(p_salt::text) || wallets_counted(p_actor)
        || wallets_counted(p_booking_reference) || wallets_counted(p_note), 'UTF8')), 'hex')
$$;

-- The chain's value after an entry. The value before a wallet's first entry names the wallet.
CREATE OR REPLACE FUNCTION wallets_chained(
    p_before bytea, p_wallet bigint, p_shown text, p_balance_after numeric, p_hidden text
) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT sha256(
        coalesce(p_before, sha256(convert_to('voucher opening v1|' || p_wallet::text, 'UTF8')))
        || sha256(convert_to(
            p_shown || '|' || p_balance_after::text || '|' || p_hidden, 'UTF8')))
$$;
