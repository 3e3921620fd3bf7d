//! What is cheaper done once, to a table that is full, than row by row while it is filled: indexes, foreign keys, triggers.
//!
//! Only within a transaction: what was dropped must come back with it, exactly as it was, or the drop must be undone.

use tokio_postgres::{Client, Error};

/// What was dropped, as statements that bring it back.
#[derive(Default)]
pub struct Postponed {
    restore: Vec<String>,
}

/// Indexes of the tables that are filled: name, definition.
const INDEXES: &str = "
    SELECT c.oid::regclass::text, pg_get_indexdef(c.oid)
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
    WHERE i.indrelid IN ('msg_queues'::regclass, 'messages'::regclass) AND NOT i.indisprimary AND i.indisunique = $1
    ORDER BY c.relname";

/// Their foreign keys: table, name, definition.
const FOREIGN_KEYS: &str = "
    SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid)
    FROM pg_constraint
    WHERE contype = 'f' AND conrelid IN ('msg_queues'::regclass, 'messages'::regclass)
    ORDER BY conname";

impl Postponed {
    /// Drops the indexes and foreign keys that are not needed to see whether an ID is taken or a queue is there.
    pub async fn while_filling(&mut self, client: &Client) -> Result<(), Error> {
        self.drop_indexes(client, false).await?;
        for row in client.query(FOREIGN_KEYS, &[]).await? {
            let (table, name, definition): (String, String, String) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            client.batch_execute(&format!("ALTER TABLE {table} DROP CONSTRAINT {name}")).await?;
            self.restore.push(format!("ALTER TABLE {table} ADD CONSTRAINT {name} {definition}"));
        }
        Ok(())
    }

    /// Drops all indexes but those of the primary keys.
    pub async fn while_counting(&mut self, client: &Client) -> Result<(), Error> {
        self.drop_indexes(client, false).await?;
        self.drop_indexes(client, true).await
    }

    /// Brings everything back.
    ///
    /// # Errors
    /// Those of the database; also that an ID stands there twice, which nobody has looked for.
    pub async fn restore(self, client: &Client) -> Result<(), Error> {
        for statement in &self.restore {
            client.batch_execute(statement).await?;
        }
        Ok(())
    }

    async fn drop_indexes(&mut self, client: &Client, unique: bool) -> Result<(), Error> {
        for row in client.query(INDEXES, &[&unique]).await? {
            let (name, definition): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            client.batch_execute(&format!("DROP INDEX {name}")).await?;
            self.restore.push(definition);
        }
        Ok(())
    }
}
