-- Counts an order towards the spending limits of its client, or refuses it with VT001
-- insufficient_balance and the detail spending_limit. Only purchases of clients with a limit call it.
--
-- Days and months are those of UTC. What was spent in an earlier one counts as nothing. The caller
-- holds the client's counter, so the orders of a client come here one after the other.
CREATE OR REPLACE FUNCTION orders_spend(p_client bigint, p_amount numeric, p_at timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    today date := (p_at AT TIME ZONE 'UTC')::date;
    this_month date := date_trunc('month', today)::date;
BEGIN
    UPDATE orders_spendinglimit
       SET spent_today = CASE WHEN day = today THEN spent_today ELSE 0 END + p_amount,
           day = today,
           spent_this_month = CASE WHEN month = this_month THEN spent_this_month ELSE 0 END
                              + p_amount,
           month = this_month
     WHERE client_id = p_client
       AND (per_day IS NULL
            OR CASE WHEN day = today THEN spent_today ELSE 0 END + p_amount <= per_day)
       AND (per_month IS NULL
            OR CASE WHEN month = this_month THEN spent_this_month ELSE 0 END + p_amount
               <= per_month);
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'insufficient_balance',
                              DETAIL = 'spending_limit';
    END IF;
END $$;
