"""The rights of the service's database role (docs/decisions/0050-two-database-roles.md).

The owner has the tables and functions, and `migrate` works as the owner. The service has a role of
its own, with the rights that the apps declare (`BackOffice.rights`) and no others: it can neither
switch a trigger off nor change a ledger entry.
"""

from collections.abc import Iterator, Mapping

from django.db.backends.utils import CursorWrapper
from psycopg import sql

# What the role holds now, by the name of the table or sequence.
HELD = """
    SELECT relname, relkind = 'S',
           coalesce(array_agg(privilege_type) FILTER (WHERE grantee = role.oid), '{}')
      FROM pg_roles AS role
     CROSS JOIN pg_class
      LEFT JOIN LATERAL aclexplode(relacl) ON true
     WHERE rolname = %s AND relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'S')
     GROUP BY relname, relkind
"""
# Rights that PostgreSQL may give to everybody. A temporary table would hide a real one of the same
# name from triggers. Large objects fill the disk. Only a superuser may revoke them.
OPEN_TO_EVERYBODY = """
    SELECT format('REVOKE CREATE ON SCHEMA public FROM PUBLIC') FROM pg_namespace
     WHERE nspname = 'public' AND pg_has_role(nspowner, 'USAGE')
       AND has_schema_privilege(%(role)s, oid, 'CREATE')
    UNION ALL
    SELECT format('REVOKE TEMPORARY ON DATABASE %%I FROM PUBLIC', datname) FROM pg_database
     WHERE datname = current_database() AND pg_has_role(datdba, 'USAGE')
       AND has_database_privilege(%(role)s, oid, 'TEMPORARY')
    UNION ALL
    SELECT format('REVOKE EXECUTE ON FUNCTION %%s FROM PUBLIC', oid::regprocedure) FROM pg_proc
     WHERE proname IN ('lo_creat', 'lo_create', 'lo_from_bytea')
       AND pronamespace = 'pg_catalog'::regnamespace AND pg_has_role(proowner, 'USAGE')
       AND has_function_privilege(%(role)s, oid, 'EXECUTE')
"""
# Rights of the connected role that the code needs and that it lacks.
MISSING = """
    SELECT format('%%s lacks %%s on %%s: run `migrate` with MIGRATION_DATABASE_URL',
                  current_user, expected.privilege, expected.name)
      FROM unnest(%(names)s::text[], %(privileges)s::text[]) AS expected (name, privilege)
      JOIN pg_class ON relname = expected.name AND relnamespace = 'public'::regnamespace
     WHERE NOT CASE relkind WHEN 'S' THEN has_sequence_privilege(oid, expected.privilege)
                            ELSE has_table_privilege(oid, expected.privilege) END
"""
# What the connected role can do beyond that, or did. One sentence says all of a superuser or the
# owner.
EXCESSIVE = """
    WITH me AS (SELECT * FROM pg_roles WHERE rolname = current_user),
         owned AS (SELECT count(*) AS tables FROM pg_class
                    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'S')
                      AND pg_has_role(current_user, relowner, 'MEMBER'))
    SELECT format('the service runs as %%s, who %%s: give it a role of its own', current_user,
                  CASE WHEN rolsuper THEN 'is a superuser' ELSE 'owns its tables' END)
      FROM me, owned WHERE rolsuper OR tables > 0
    UNION ALL
    SELECT format('the database has %%s large objects, and the service makes none', count(*))
      FROM pg_largeobject_metadata HAVING count(*) > 0
    UNION ALL
    SELECT format('%%s has a setting of its own: %%s', current_user, setting)
      FROM me JOIN pg_db_role_setting ON setrole = me.oid, unnest(setconfig) AS setting
     WHERE split_part(setting, '=', 1) <> ALL (%(settings)s)
    UNION ALL
    SELECT format('%%s may %%s', current_user, excess)
      FROM me, owned, LATERAL (
        SELECT 'create roles' WHERE rolcreaterole
        UNION ALL SELECT 'create databases' WHERE rolcreatedb
        UNION ALL SELECT 'replicate the database' WHERE rolreplication
        UNION ALL SELECT 'act as ' || power.rolname FROM pg_roles AS power
                   WHERE power.rolname = ANY (%(powers)s)
                     AND pg_has_role(current_user, power.oid, 'MEMBER')
        UNION ALL SELECT 'create objects in schema ' || nspname FROM pg_namespace
                   WHERE has_schema_privilege(oid, 'CREATE')
        UNION ALL SELECT 'create schemas'
                   WHERE has_database_privilege(current_database(), 'CREATE')
        UNION ALL SELECT 'create temporary tables'
                   WHERE has_database_privilege(current_database(), 'TEMPORARY')
        UNION ALL SELECT format('%%s on %%s', privilege, relname)
                    FROM pg_class CROSS JOIN unnest(%(all)s::text[]) AS privilege
                   WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
                     AND has_table_privilege(pg_class.oid, privilege)
                     AND NOT EXISTS (
                         SELECT FROM unnest(%(names)s::text[], %(privileges)s::text[])
                                  AS expected (name, right_of_it)
                          WHERE expected.name = relname AND expected.right_of_it = privilege)
      ) AS found (excess)
     WHERE NOT rolsuper AND tables = 0
"""
ALL_ON_TABLES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
POWERS = (
    *("pg_execute_server_program", "pg_read_server_files", "pg_write_server_files"),
    *("pg_read_all_data", "pg_write_all_data", "pg_maintain", "pg_database_owner"),
)
# The settings of the role that docs/operate/scale.md names. A role may change its own.
SETTINGS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
ON_SEQUENCES = "SELECT, USAGE"  # unless an app declares more

Rights = Mapping[str, str]  # such as {"wallets_ledgerentry": "SELECT, INSERT"}


class NoSuchRole(Exception):
    """The role of DATABASE_URL does not exist."""


def grant_rights(cursor: CursorWrapper, role: str, rights: Rights) -> None:
    """Gives the role exactly these rights on the tables that exist. Call it as their owner.

    A table that is not named gets none. Statements run only for what differs. Raises NoSuchRole.
    """
    cursor.execute(HELD, [role])
    held = cursor.fetchall()
    if not held:
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone() is None:
            raise NoSuchRole(f"There is no database role {role!r}. Create it first.")
    for name, is_sequence, present in held:
        declared = set(_split(rights.get(name, ON_SEQUENCES if is_sequence else "")))
        for action, word, privileges in (
            ("GRANT", "TO", declared - set(present)),
            ("REVOKE", "FROM", set(present) - declared),
        ):
            if privileges:
                statement = sql.SQL("{} {} ON {} {} {} {}").format(
                    sql.SQL(action),
                    sql.SQL(", ").join(map(sql.SQL, sorted(privileges))),
                    sql.SQL("SEQUENCE" if is_sequence else "TABLE"),
                    sql.Identifier("public", name),
                    sql.SQL(word),
                    sql.Identifier(role),
                )
                cursor.execute(statement)
    cursor.execute(OPEN_TO_EVERYBODY, {"role": role})
    for (statement,) in cursor.fetchall():
        cursor.execute(statement)


def parameters(rights: Rights) -> dict[str, list[str]]:
    """The parameters of MISSING and EXCESSIVE."""
    pairs = list(_pairs(rights))
    return {
        "names": [name for name, _ in pairs],
        "privileges": [privilege for _, privilege in pairs],
        "all": list(ALL_ON_TABLES),
        "powers": list(POWERS),
        "settings": list(SETTINGS),
    }


def _pairs(rights: Rights) -> Iterator[tuple[str, str]]:
    for name, privileges in rights.items():
        for privilege in _split(privileges):
            yield name, privilege


def _split(privileges: str) -> list[str]:
    return privileges.split(", ") if privileges else []
