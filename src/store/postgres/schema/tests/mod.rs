//! What a schema of ours is, compared with the reference's, and what its functions do.

mod facts;
mod functions;
mod opening;

use tokio_postgres::Client;

use super::super::cluster::{Cluster, Schema};
use super::super::connect::{Connector, DatabaseOptions, SchemaName};
use super::migrations::MIGRATIONS;
use super::{Change, Create, Preparation, Prepared, SchemaError, UnfinishedImport, prepare};

/// A connection to the schema of the test.
async fn connect(schema: &Schema) -> Client {
    connector(&schema.cluster().connection(), schema.name()).connect().await.expect("a connection")
}

fn connector(connection: &str, schema: &str) -> Connector {
    let options = DatabaseOptions { connection: connection.into(), schema: name(schema) };
    Connector::new(&options).expect("a good connection string")
}

fn name(schema: &str) -> SchemaName {
    schema.parse().expect("a good name")
}

/// Prepares the schema without asking.
async fn make(schema: &Schema, create: Create) -> Result<Prepared, SchemaError> {
    make_with(schema, create, |_| panic!("nothing is to be asked")).await
}

async fn make_with(
    schema: &Schema,
    create: Create,
    mut confirm: impl FnMut(Change<'_>) -> bool + Send,
) -> Result<Prepared, SchemaError> {
    let how = Preparation { create, unfinished_import: UnfinishedImport::Refuse, confirm: &mut confirm };
    prepare(&mut connect(schema).await, &name(schema.name()), how).await
}

/// A new schema at the newest level.
async fn newest() -> Schema {
    let schema = Cluster::shared().schema();
    assert_eq!(make(&schema, Create::IfMissing).await.expect("a schema"), Prepared::Created);
    schema
}

/// A schema at the level of this number of migrations, made as a server made it that knew no more.
async fn at_level(level: usize) -> Schema {
    let schema = Cluster::shared().schema();
    let mut client = connect(&schema).await;
    let state = super::State::read(&client, &name(schema.name())).await.expect("the state of none");
    super::run::create(&mut client, &name(schema.name()), &MIGRATIONS[..level], &state).await.expect("a level");
    schema
}

/// The names of the migrations that the schema has.
fn levels(schema: &Schema) -> String {
    schema.sql("SELECT string_agg(name, ' ' ORDER BY name) FROM migrations")
}

fn names(migrations: std::ops::Range<usize>) -> Vec<&'static str> {
    MIGRATIONS[migrations].iter().map(|migration| migration.name).collect()
}
