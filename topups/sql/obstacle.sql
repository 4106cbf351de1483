-- Names the reason, known in advance, for which every purchase of a top-up product on sale by an
-- account is refused; NULL if there is none. The only place with this rule: `sellable` in the lists
-- says whether there is a reason, and the purchase refuses with it.
--
--   price_unavailable      the price is in another currency than the wallet
--   client_without_wallet  nobody pays
--   options_missing        no value of a required dropdown is valid
--
-- Stock and balance are no such reasons: both may change before the purchase.
CREATE OR REPLACE FUNCTION topups_obstacle(p_product bigint, p_currency text, p_account bigint)
RETURNS text LANGUAGE plpgsql STABLE
SET enable_seqscan = off  -- docs/performance.md
AS $$
BEGIN
    RETURN CASE
        WHEN p_currency <> (SELECT currency FROM accounts_account WHERE id = p_account)
            THEN 'price_unavailable'
        WHEN NOT EXISTS (SELECT FROM wallets_wallet WHERE account_id = p_account)
            THEN 'client_without_wallet'
        WHEN EXISTS (
            SELECT FROM topups_topupfield field
             WHERE field.product_id = p_product AND field.required AND field.type = 'dropdown'
               AND NOT EXISTS (
                   SELECT FROM topups_topupfieldoption option WHERE option.field_id = field.id))
            THEN 'options_missing'
    END;
END $$;
