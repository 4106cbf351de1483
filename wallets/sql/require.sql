-- Refuses with VT001 client_without_wallet. Purchases call it before they check the stock: the
-- refusal must come first, although the debit comes last.
CREATE OR REPLACE FUNCTION wallets_require(p_account bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM wallets_wallet WHERE account_id = p_account;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'client_without_wallet';
    END IF;
END $$;
