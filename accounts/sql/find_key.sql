-- The live key with this prefix, with its client and account; no row where there is none.
--
-- Asked by every request of the API, so it is a function: PostgreSQL plans a function's query once
-- per connection, and a query that the ORM sends anew each time. Whether the secret is right, and
-- whether this client may call from where it does, is decided in accounts/authentication.py.
CREATE OR REPLACE FUNCTION accounts_find_key(p_prefix text)
RETURNS TABLE (
    digest text,
    client_id bigint, client_name text, client_enabled boolean, rate_limit_per_minute integer,
    allowed_networks text[],
    account_id bigint, account_currency text, account_enabled boolean
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off  -- docs/performance.md, "The young table"
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT key.digest::text, client.id, client.name::text, client.enabled,
           client.rate_limit_per_minute, client.allowed_networks::text[],
           account.id, account.currency::text, account.enabled
      FROM accounts_apikey key
      JOIN accounts_apiclient client ON client.id = key.client_id
      LEFT JOIN accounts_account account ON account.id = client.account_id
     WHERE key.prefix = p_prefix
       AND key.revoked_at IS NULL
       AND (key.expires_at IS NULL OR key.expires_at > statement_timestamp());
END $$;
