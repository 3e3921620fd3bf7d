//! Doing and undoing migrations.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, GenericClient, Transaction};

use super::super::connect::{SchemaName, reason};
use super::error::SchemaError;
use super::migrations::{Migration, TABLE};
use super::state::State;

/// Makes the schema with all of its migrations, wholly or not at all.
pub(super) async fn create(
    client: &mut Client,
    schema: &SchemaName,
    migrations: &[Migration],
    state: &State,
) -> Result<(), SchemaError> {
    let transaction = begin(client, schema).await?;
    create_within(&transaction, schema, migrations, state).await?;
    Ok(transaction.commit().await?)
}

/// The same in a transaction of the caller, which has the schema in its `search_path`.
pub(super) async fn create_within(
    client: &(impl GenericClient + Sync),
    schema: &SchemaName,
    migrations: &[Migration],
    state: &State,
) -> Result<(), SchemaError> {
    if !state.exists {
        let created = client.batch_execute(&format!("CREATE SCHEMA {}", schema.quoted())).await;
        created.map_err(|error| not_created(&error, schema, state))?;
    }
    create_table(client, state).await.map_err(|error| not_created(&error, schema, state))?;
    for migration in migrations {
        run(client, migration).await.map_err(|error| failed(schema, migration.name, &error))?;
    }
    Ok(())
}

/// Does the migrations, each in a transaction of its own.
pub(super) async fn up(
    client: &mut Client,
    schema: &SchemaName,
    migrations: &[Migration],
    state: &State,
) -> Result<(), SchemaError> {
    if !state.has_migrations_table {
        let transaction = begin(client, schema).await?;
        create_table(&transaction, state).await?;
        transaction.commit().await?;
    }
    for migration in migrations {
        let transaction = begin(client, schema).await?;
        run(&transaction, migration).await.map_err(|error| failed(schema, migration.name, &error))?;
        transaction.commit().await?;
    }
    Ok(())
}

/// Undoes the migrations of these names by their texts in the database, each in a transaction of its own.
pub(super) async fn down(client: &mut Client, schema: &SchemaName, names: &[&str]) -> Result<(), SchemaError> {
    for name in names {
        let transaction = begin(client, schema).await?;
        undo(&transaction, name).await.map_err(|error| failed(schema, name, &error))?;
        transaction.commit().await?;
    }
    Ok(())
}

async fn begin<'a>(client: &'a mut Client, schema: &SchemaName) -> Result<Transaction<'a>, Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(&format!("SET LOCAL search_path TO {}", schema.quoted())).await?;
    Ok(transaction)
}

async fn create_table(client: &(impl GenericClient + Sync), state: &State) -> Result<(), Error> {
    match state.has_migrations_table {
        true => Ok(()),
        false => client.batch_execute(TABLE).await,
    }
}

/// Recorded first: two that migrate at once meet here, before they change anything.
async fn run(client: &(impl GenericClient + Sync), migration: &Migration) -> Result<(), Error> {
    let record = "INSERT INTO migrations (name, ts, down) VALUES ($1, now() AT TIME ZONE 'UTC', $2)";
    client.execute(record, &[&migration.name, &migration.down]).await?;
    client.batch_execute(migration.up).await
}

async fn undo(transaction: &Transaction<'_>, name: &str) -> Result<(), Error> {
    let statement = "DELETE FROM migrations WHERE name = $1 RETURNING down";
    let row = transaction.query_one(statement, &[&name]).await?;
    transaction.batch_execute(row.try_get(0)?).await
}

fn failed(schema: &SchemaName, name: &str, error: &Error) -> SchemaError {
    SchemaError::Migration { schema: schema.clone(), name: name.to_owned(), reason: reason(error) }
}

fn not_created(error: &Error, schema: &SchemaName, state: &State) -> SchemaError {
    match error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
        true => SchemaError::NotAllowed {
            schema: schema.clone(),
            database: state.database.clone(),
            user: state.user.clone(),
            reason: reason(error),
        },
        false => SchemaError::Failed(reason(error)),
    }
}
