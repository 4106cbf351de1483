-- Returns the live key with this prefix, its client and its account; no row if there is none.
-- "Live" is the rule of ApiKeyQuerySet.live() in accounts/models.py.
--
-- Every API request calls this. It is a function because PostgreSQL plans a function's query once
-- per connection, but plans a query from the ORM every time. accounts/api_access/keys.py checks the
-- secret, and accounts/api_access/authentication.py checks the client and its address.
CREATE OR REPLACE FUNCTION accounts_find_key(p_prefix text)
RETURNS TABLE (
    digest text,
    client_id bigint, client_name text, client_enabled boolean, rate_limit_per_minute integer,
    allowed_networks text[],
    account_id bigint, account_currency text, account_enabled boolean, price_list_id bigint,
    is_only_client boolean  -- the account has no other, not even one that is switched off
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off  -- docs/performance.md
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT key.digest::text, client.id, client.name::text, client.enabled,
           client.rate_limit_per_minute, client.allowed_networks::text[],
           account.id, account.currency::text, account.enabled, account.price_list_id,
           NOT EXISTS (
               SELECT FROM accounts_apiclient other
                WHERE other.account_id = client.account_id AND other.id <> client.id)
      FROM accounts_apikey key
      JOIN accounts_apiclient client ON client.id = key.client_id
      LEFT JOIN accounts_account account ON account.id = client.account_id
     WHERE key.prefix = p_prefix
       AND key.revoked_at IS NULL
       AND (key.expires_at IS NULL OR key.expires_at > statement_timestamp());
END $$;
