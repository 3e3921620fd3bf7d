//! What the database has.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

use super::super::connect::SchemaName;
use super::error::SchemaError;
use super::import_mark::IMPORT_MARK;

/// A migration that was done in the database.
#[derive(Debug)]
pub(super) struct Done {
    pub name: String,
    pub can_be_undone: bool,
}

/// A schema as it was found.
#[derive(Debug)]
pub(super) struct State {
    pub exists: bool,
    /// Whether there are tables beside that of the migrations.
    pub has_tables: bool,
    pub has_migrations_table: bool,
    /// In their order.
    pub done: Vec<Done>,
    pub import_mark: Option<String>,
    pub has_digest: bool,
    pub database: String,
    pub user: String,
    /// As a number, and as text.
    pub version: (i32, String),
}

/// The state of a schema that has migrations, in one row for each.
fn of_migrations(schema: &SchemaName) -> String {
    format!(
        "SELECT {SURROUNDINGS}, name, down IS NOT NULL FROM {}.migrations, (SELECT '{schema}'::text AS wanted) AS schema
          ORDER BY name COLLATE \"C\"",
        schema.quoted()
    )
}

/// The state of one that has none.
fn of_others(schema: &SchemaName) -> String {
    format!(
        "SELECT {SURROUNDINGS}, count(relname) FILTER (WHERE relname = 'migrations') > 0,
            count(relname) FILTER (WHERE relname <> 'migrations') > 0, bool_or(namespace.oid IS NOT NULL)
          FROM (SELECT '{schema}'::text AS wanted) AS schema
          LEFT JOIN pg_namespace AS namespace ON nspname = wanted
          LEFT JOIN pg_class ON relnamespace = namespace.oid AND relkind IN ('r', 'p', 'v', 'm', 'f')
          GROUP BY wanted"
    )
}

const SURROUNDINGS: &str = "obj_description(to_regnamespace(quote_ident(wanted)), 'pg_namespace'),
    to_regprocedure('public.digest(bytea, text)') IS NOT NULL, current_database()::text, current_user::text,
    current_setting('server_version_num')::integer, current_setting('server_version')";

/// The columns of [`SURROUNDINGS`].
const WIDTH: usize = 6;

impl State {
    /// Looks at the schema: one query if it has migrations.
    pub async fn read(client: &Client, schema: &SchemaName) -> Result<State, SchemaError> {
        match client.query(&of_migrations(schema), &[]).await {
            Ok(rows) => {
                if let Some(first) = rows.first() {
                    let mut state = State::surroundings(first)?;
                    state.done = rows.iter().map(done).collect::<Result<_, _>>()?;
                    return Ok(state);
                }
            }
            Err(error) if is_absence(error.code()) => {}
            Err(error) => return Err(error.into()),
        }
        let row = client.query_one(&of_others(schema), &[]).await?;
        Ok(State {
            has_migrations_table: row.try_get(WIDTH)?,
            has_tables: row.try_get(WIDTH + 1)?,
            exists: row.try_get(WIDTH + 2)?,
            ..State::surroundings(&row)?
        })
    }

    fn surroundings(row: &Row) -> Result<State, SchemaError> {
        let comment: Option<String> = row.try_get(0)?;
        Ok(State {
            exists: true,
            has_tables: true,
            has_migrations_table: true,
            done: Vec::new(),
            import_mark: comment.filter(|comment| comment.starts_with(IMPORT_MARK)),
            has_digest: row.try_get(1)?,
            database: row.try_get(2)?,
            user: row.try_get(3)?,
            version: (row.try_get(4)?, row.try_get(5)?),
        })
    }
}

fn done(row: &Row) -> Result<Done, SchemaError> {
    Ok(Done { name: row.try_get(WIDTH)?, can_be_undone: row.try_get(WIDTH + 1)? })
}

fn is_absence(code: Option<&SqlState>) -> bool {
    [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME].iter().any(|absence| code == Some(absence))
}
