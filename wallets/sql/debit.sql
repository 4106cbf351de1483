-- Takes the price of an order from the wallet. This is the only debit of a purchase.
-- Refuses with VT001 insufficient_balance or client_without_wallet (the trigger in post_entry.sql
-- refuses).
CREATE OR REPLACE FUNCTION wallets_debit(
    p_account bigint, p_amount numeric, p_order_reference text, p_actor text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO wallets_ledgerentry
        (wallet_id, kind, counterpart, amount, balance_after, order_reference, actor)
    VALUES
        (p_account, 'purchase', 'sales', -p_amount, 0, p_order_reference, p_actor);
END $$;
