-- Returns the number and cost of an account's orders since p_since, by day (UTC) and product.
--
-- Reads the ledger from p_early on, which is well before p_since (wallets/sql/entries_since.sql
-- says why).
CREATE OR REPLACE FUNCTION orders_spend_of_account(
    p_account bigint, p_since timestamptz, p_early timestamptz
) RETURNS TABLE (day date, product text, orders bigint, amount numeric)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    first_entry bigint := wallets_entries_since(p_account, p_early);
BEGIN
    RETURN QUERY
    SELECT sold.day, (coalesce(product.name, topup.name)
                      || coalesce(' / ' || variation.name, ''))::text,
           sold.orders, sold.amount
      FROM (SELECT (entry.created_at AT TIME ZONE 'UTC')::date AS day,
                   item.shelf_id, fulfilment.product_id AS topup_id,
                   count(*) AS orders, -sum(entry.amount) AS amount
              FROM wallets_ledgerentry entry
              JOIN orders_order item ON item.reference = entry.order_reference
              LEFT JOIN topups_fulfilment fulfilment ON fulfilment.id = item.fulfilment_id
             WHERE entry.wallet_id = p_account AND entry.id >= first_entry
               AND entry.kind = 'purchase' AND entry.created_at >= p_since
             GROUP BY 1, 2, 3) sold
      LEFT JOIN catalogue_shelf shelf ON shelf.id = sold.shelf_id
      LEFT JOIN catalogue_product product ON product.id = shelf.product_id
      LEFT JOIN catalogue_variation variation ON variation.id = shelf.variation_id
      LEFT JOIN topups_topupproduct topup ON topup.id = sold.topup_id
     ORDER BY 1, 2;
END $$;
