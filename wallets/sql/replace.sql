-- Records that an order replaces a code and costs nothing. It locks the wallet, as a debit does.
-- Refuses with VT001 client_without_wallet (the trigger in post_entry.sql refuses). A case that has a
-- replacement already fails on the unique booking reference.
CREATE OR REPLACE FUNCTION wallets_record_replacement(
    p_account bigint, p_order_reference text, p_case bigint, p_actor text, p_note text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO wallets_ledgerentry
        (wallet_id, kind, counterpart, amount, balance_after, order_reference, actor, note,
         booking_reference)
    VALUES
        (p_account, 'replacement', 'sales', 0, 0, p_order_reference, p_actor, p_note,
         'replacement-of-case:' || p_case);
END $$;
