//! The mark of an import that is not finished: a comment on the schema, which is no object of it.

use tokio_postgres::{Error, GenericClient};

use super::super::connect::SchemaName;

/// What the comment starts with.
pub(super) const IMPORT_MARK: &str = "smp-server import in progress";

/// Marks the schema: no server starts on it until the mark is cleared. `note` says what is imported, for the operator. A
/// comment that the schema had is replaced.
///
/// # Errors
/// The database failed, or the schema is another role's.
pub async fn mark_import(client: &(impl GenericClient + Sync), schema: &SchemaName, note: &str) -> Result<(), Error> {
    let comment = literal(&format!("{IMPORT_MARK}: {note}"));
    client.batch_execute(&format!("COMMENT ON SCHEMA {} IS {comment}", schema.quoted())).await
}

/// The mark, if the schema exists and has one.
///
/// # Errors
/// The database failed.
pub async fn import_mark(client: &(impl GenericClient + Sync), schema: &SchemaName) -> Result<Option<String>, Error> {
    let statement = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = $1";
    let row = client.query_opt(statement, &[&schema.as_str()]).await?;
    let comment: Option<String> = row.and_then(|row| row.get(0));
    Ok(comment.filter(|comment| comment.starts_with(IMPORT_MARK)))
}

/// Removes the mark; another comment stays.
///
/// # Errors
/// The database failed.
pub async fn clear_import_mark(client: &(impl GenericClient + Sync), schema: &SchemaName) -> Result<(), Error> {
    match import_mark(client, schema).await? {
        Some(_) => client.batch_execute(&format!("COMMENT ON SCHEMA {} IS NULL", schema.quoted())).await,
        None => Ok(()),
    }
}

/// The text as it stands in SQL, however the server is configured.
fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
