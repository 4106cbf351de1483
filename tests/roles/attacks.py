"""What somebody would try with the database role of the service."""

# Refused for want of a right, whatever triggers say.
FORBIDDEN = {
    "switch a trigger off": "ALTER TABLE wallets_ledgerentry DISABLE TRIGGER ALL",
    "switch all triggers off": "SET session_replication_role = replica",
    "switch triggers off for a function": "SET LOCAL session_replication_role = replica",
    "drop a trigger": "DROP TRIGGER wallets_post_entry ON wallets_ledgerentry",
    "add a trigger": (
        "CREATE TRIGGER mine BEFORE INSERT ON wallets_ledgerentry"
        " FOR EACH ROW EXECUTE FUNCTION wallets_post_entry()"
    ),
    "drop a constraint": (
        "ALTER TABLE wallets_wallet DROP CONSTRAINT wallets_wallet_balance_not_negative"
    ),
    "drop an index": "DROP INDEX wallets_entry_of_wallet",
    "drop a table": "DROP TABLE wallets_ledgerentry",
    "empty the ledger": "TRUNCATE wallets_ledgerentry",
    "empty everything": "TRUNCATE accounts_account CASCADE",
    "change an entry": "UPDATE wallets_ledgerentry SET amount = amount * 2",
    "lock an entry": "SELECT FROM wallets_ledgerentry FOR UPDATE",
    "delete an entry": "DELETE FROM wallets_ledgerentry",
    "merge into the ledger": (
        "MERGE INTO wallets_ledgerentry AS entry USING wallets_wallet AS wallet"
        " ON entry.wallet_id = wallet.account_id WHEN MATCHED THEN UPDATE SET amount = 1"
    ),
    "change an order": "UPDATE orders_order SET unit_price = 0",
    "delete an order": "DELETE FROM orders_order",
    "forget a lost purchase": "DELETE FROM orders_lostpurchase",
    "change a fulfilment's history": "UPDATE topups_fulfilmentevent SET actor = 'somebody'",
    "delete a fulfilment's history": "DELETE FROM topups_fulfilmentevent",
    "change a proof of delivery": "UPDATE topups_deliveryproof SET transaction_number = 'x'",
    "delete a proof of delivery": "DELETE FROM topups_deliveryproof",
    "delete a fulfilment": "DELETE FROM topups_fulfilment",
    "change an audit entry": "UPDATE audit_auditentry SET note = ''",
    "change a price of the past": "UPDATE catalogue_shelfpricechange SET before = 0",
    "change a top-up price of the past": "UPDATE topups_topuppricechange SET before = 0",
    "delete a wallet": "DELETE FROM wallets_wallet",
    "forget a key": "DELETE FROM accounts_apikey",
    "pretend a migration": "DELETE FROM django_migrations",
    "invent a permission": "UPDATE auth_permission SET codename = 'change_user'",
    "reuse ids of the ledger": "SELECT setval('wallets_ledgerentry_id_seq', 1)",
    "replace a function": (
        "CREATE OR REPLACE FUNCTION wallets_post_entry() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NEW; END'"
    ),
    "change a function": "ALTER FUNCTION wallets_post_entry() SET search_path = pg_temp",
    "create a function": "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "create a temporary function": (
        "CREATE FUNCTION pg_temp.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'"
    ),
    "create a table": "CREATE TABLE mine (id int)",
    # The trigger of the ledger would change this one, and leave the balance as it is.
    "hide a table": "CREATE TEMPORARY TABLE wallets_wallet (account_id bigint, balance numeric)",
    "create a view": "CREATE VIEW mine AS SELECT 1",
    "create a schema": "CREATE SCHEMA mine",
    "create an extension": "CREATE EXTENSION {extension}",
    "create a rule": "CREATE RULE mine AS ON INSERT TO wallets_ledgerentry DO INSTEAD NOTHING",
    "add a column": "ALTER TABLE wallets_wallet ADD COLUMN mine int",
    "take a table": "ALTER TABLE wallets_ledgerentry OWNER TO CURRENT_USER",
    "refer to a table": "CREATE TABLE mine (id int REFERENCES wallets_wallet)",
    "become the owner": "SET ROLE {owner}",
    "sign in as the owner": "SET SESSION AUTHORIZATION {owner}",
    "become a superuser": "ALTER ROLE CURRENT_USER SUPERUSER",
    "create a role": "CREATE ROLE mine SUPERUSER",
    "join the owner": "GRANT {owner} TO CURRENT_USER",
    "read passwords": "SELECT rolpassword FROM pg_authid",
    "read a file": "SELECT pg_read_file('postgresql.conf')",
    "run a program": "COPY orders_order TO PROGRAM 'cat'",
    "write a file": "COPY orders_order TO '/tmp/mine'",
    "read the server's log of changes": ("SELECT pg_create_physical_replication_slot('mine')"),
    "write a catalogue": "UPDATE pg_trigger SET tgenabled = 'D'",
    "empty the encryption keys": "TRUNCATE core_encryptionkey",
    "end other sessions": (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{owner}'"
    ),
}
# The same, for statements that PostgreSQL refuses inside a transaction.
FORBIDDEN_OUTSIDE = {
    "create a database": "CREATE DATABASE mine",
    "change the server": "ALTER SYSTEM SET fsync = off",
}
# The service has the right, and a trigger refuses.
REFUSED_BY_TRIGGER = {
    "delete a code": "DELETE FROM catalogue_vouchercode",
    "change a balance": "UPDATE wallets_wallet SET balance = balance + 1",
    "change a balance by a procedure": (
        "DO 'BEGIN UPDATE wallets_wallet SET balance = balance + 1; END'"
    ),
    "start with money": "INSERT INTO wallets_wallet SELECT -1, 10",
    "sell a sold code again": (
        "UPDATE catalogue_vouchercode SET order_id = NULL WHERE order_id IS NOT NULL"
    ),
    "overwrite a sold code": (
        "UPDATE catalogue_vouchercode SET sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1)"
        " WHERE order_id IS NOT NULL"
    ),
    "forget the digest of a code": "UPDATE catalogue_vouchercode SET digest = 'another'",
    "forget that a code was ever imported": "DELETE FROM catalogue_codedigest",
    "forget the root secret": "DELETE FROM core_encryptionkey",
    "replace the root secret": (
        "INSERT INTO core_encryptionkey VALUES (255, 'mine', now());"
        "DELETE FROM core_encryptionkey WHERE key_id <> 255"
    ),
    "book in the past": (
        "INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, amount, balance_after,"
        " actor, booking_reference, created_at) SELECT account_id, 'deposit', 'bank', 1, 0, 'anna',"
        " 'mine', now() - interval '1 day' FROM wallets_wallet LIMIT 1"
    ),
    "record in the past": (
        "INSERT INTO audit_auditentry (action, object_type, object_id, changes, created_at)"
        " VALUES ('changed', 'x', 'x', '{}', now() - interval '1 day')"
    ),
    "delete an audit entry": "DELETE FROM audit_auditentry",
    "refund twice": (
        "UPDATE topups_fulfilment SET refunded_at = NULL WHERE refunded_at IS NOT NULL"
    ),
}
