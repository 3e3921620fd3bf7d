//! What is opened, what is refused, and with which words.

use super::super::{clear_import_mark, import_mark, mark_import};
use super::*;

/// The refusal, without asking.
async fn refusal(schema: &Schema, create: Create) -> String {
    make(schema, create).await.expect_err("a refusal").to_string()
}

#[tokio::test]
async fn a_schema_is_created_only_if_it_may_and_then_opened_as_it_is() {
    let schema = Cluster::shared().schema();
    let text = refusal(&schema, Create::Never).await;
    assert!(text.contains(schema.name()) && text.contains("database \"smp\""), "{text}");
    assert_eq!(make(&schema, Create::IfMissing).await.expect("a schema"), Prepared::Created);
    let recorded = "SELECT string_agg(ts::text || down, '') FROM migrations";
    let before = schema.sql(recorded);
    assert_eq!(make(&schema, Create::IfMissing).await.expect("the schema"), Prepared::Opened);
    assert_eq!(make(&schema, Create::Never).await.expect("the schema"), Prepared::Opened);
    assert_eq!(schema.sql(recorded), before);
}

#[tokio::test]
async fn migrations_are_recorded_with_the_time_in_utc() {
    let schema = Cluster::shared().schema();
    let mut client = connect(&schema).await;
    client.batch_execute("SET timezone TO 'Asia/Tokyo'").await.expect("a time zone");
    let how =
        Preparation { create: Create::IfMissing, unfinished_import: UnfinishedImport::Refuse, confirm: &mut |_| false };
    prepare(&mut client, &name(schema.name()), how).await.expect("a schema");
    let recent =
        "SELECT count(*) FROM migrations WHERE abs(extract(epoch FROM ts - (now() AT TIME ZONE 'UTC'))) < 3600";
    assert_eq!(schema.sql(recent), "6");
}

#[tokio::test]
async fn an_empty_schema_that_was_made_for_us_is_filled() {
    let schema = Cluster::shared().schema();
    schema.sql(format!("CREATE SCHEMA {}", schema.name()));
    assert_eq!(make(&schema, Create::IfMissing).await.expect("a schema"), Prepared::Created);
    assert_eq!(make(&schema, Create::Never).await.expect("the schema"), Prepared::Opened);
}

#[tokio::test]
async fn a_schema_that_the_other_server_had_only_begun_is_filled() {
    let schema = Cluster::shared().schema();
    schema.sql(format!("CREATE SCHEMA {}; {}", schema.name(), super::super::migrations::TABLE));
    assert_eq!(make(&schema, Create::IfMissing).await.expect("a schema"), Prepared::Created);
    assert_eq!(levels(&schema), names(0..6).join(" "));
}

#[tokio::test]
async fn an_older_schema_is_migrated_once_that_was_confirmed() {
    let schema = at_level(4).await;
    let mut asked = Vec::new();
    let refused = make_with(&schema, Create::IfMissing, |change| {
        asked.push(format!("{change:?}"));
        false
    });
    let text = refused.await.expect_err("a refusal").to_string();
    assert_eq!(asked, [format!("{:?}", Change::Up(&names(4..6)))]);
    assert!(text.contains("--confirm-migrations up") && text.contains(&names(4..6).join(", ")), "{text}");
    assert_eq!(levels(&schema), names(0..4).join(" "));
    let made = make_with(&schema, Create::Never, |change| matches!(change, Change::Up(_))).await;
    assert_eq!(made.expect("a migration"), Prepared::Migrated(2));
    assert_eq!(levels(&schema), names(0..6).join(" "));
}

#[tokio::test]
async fn migrations_before_one_that_fails_are_done_and_it_leaves_nothing() {
    let schema = at_level(3).await;
    // The fifth makes this index.
    schema.sql("CREATE INDEX idx_msg_queues_updated_at_recipient_id ON msg_queues (status)");
    let text = make_with(&schema, Create::Never, |_| true).await.expect_err("a failure").to_string();
    assert!(text.contains("20250903_store_messages") && text.contains("already exists"), "{text}");
    assert_eq!(levels(&schema), names(0..4).join(" "));
    assert_eq!(schema.sql("SELECT to_regclass('messages') IS NULL"), "t");
    schema.sql("DROP INDEX idx_msg_queues_updated_at_recipient_id");
    assert_eq!(make_with(&schema, Create::Never, |_| true).await.expect("the rest"), Prepared::Migrated(2));
}

#[tokio::test]
async fn a_migration_that_is_cut_off_leaves_the_level_before() {
    let schema = at_level(5).await;
    // It stops at the table that another session has locked, and is ended there.
    let mut other = connect(&schema).await;
    let lock = other.transaction().await.expect("a transaction");
    lock.batch_execute("LOCK TABLE services").await.expect("a lock");
    let migration = async { make_with(&schema, Create::Never, |_| true).await.expect_err("an end").to_string() };
    let end = async {
        let waiting = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted AND relation = '{}.services'::regclass",
            schema.name()
        );
        while lock.query(&waiting, &[]).await.expect("an answer").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(migration, end);
    lock.rollback().await.expect("the end of the lock");
    assert_eq!(levels(&schema), names(0..5).join(" "));
    assert_eq!(schema.sql("SELECT to_regproc('xor_combine') IS NULL"), "t");
    assert_eq!(make_with(&schema, Create::Never, |_| true).await.expect("the rest"), Prepared::Migrated(1));
}

#[tokio::test]
async fn a_newer_schema_is_undone_newest_first_once_that_was_confirmed() {
    let schema = newest().await;
    schema.sql(
        "CREATE TABLE later (); CREATE TABLE latest (); INSERT INTO migrations VALUES \
         ('20270101_later', now(), 'DROP TABLE later'), \
         ('20270202_latest', now(), 'DROP TABLE latest; CREATE TABLE trace AS SELECT * FROM later')",
    );
    let text = make_with(&schema, Create::Never, |change| matches!(change, Change::Up(_))).await;
    let text = text.expect_err("a refusal").to_string();
    assert!(text.contains("--confirm-migrations down") && text.contains("20270202_latest, 20270101_later"), "{text}");
    let made = make_with(&schema, Create::Never, |_| true).await.expect("a way back");
    assert_eq!(made, Prepared::Migrated(2));
    assert_eq!(levels(&schema), names(0..6).join(" "));
    let left = "SELECT to_regclass('later') IS NULL, to_regclass('latest') IS NULL, to_regclass('trace') IS NULL";
    assert_eq!(schema.sql(left), "t|t|f", "the later one was there when the latest was undone");
}

#[tokio::test]
async fn a_newer_schema_without_a_way_back_is_refused() {
    let schema = newest().await;
    schema.sql("INSERT INTO migrations VALUES ('20270101_one', now(), NULL), ('20270202_two', now(), 'SELECT 1')");
    let text = refusal(&schema, Create::Never).await;
    assert!(text.contains("cannot be undone: 20270101_one."), "{text}");
    assert_eq!(levels(&schema), names(0..6).join(" ") + " 20270101_one 20270202_two");
}

#[tokio::test]
async fn another_history_is_refused_with_both_names() {
    let schema = newest().await;
    schema.sql("UPDATE migrations SET name = '20250321_other' WHERE name = '20250514_service_certs'");
    let text = refusal(&schema, Create::Never).await;
    assert!(text.contains("20250321_other") && text.contains("20250514_service_certs"), "{text}");
}

#[tokio::test]
async fn a_schema_with_other_tables_is_refused() {
    let schema = Cluster::shared().schema();
    schema.sql(format!("CREATE SCHEMA {}; CREATE TABLE foreign_table ()", schema.name()));
    let text = refusal(&schema, Create::IfMissing).await;
    assert!(text.contains("not this server's") && text.contains("db_schema"), "{text}");
    schema.sql(super::super::migrations::TABLE);
    assert_eq!(refusal(&schema, Create::Never).await, text, "an empty table of migrations makes no difference");
}

#[tokio::test]
async fn a_schema_with_an_unfinished_import_is_refused_unless_told_otherwise() {
    let schema = newest().await;
    let own_name = name(schema.name());
    let mut client = connect(&schema).await;
    assert_eq!(import_mark(&client, &own_name).await.expect("an answer"), None);
    mark_import(&client, &own_name, r"it's from C:\'; DROP TABLE messages").await.expect("a mark");
    let mark = import_mark(&client, &own_name).await.expect("an answer").expect("a mark");
    assert_eq!(mark, r"smp-server import in progress: it's from C:\'; DROP TABLE messages");
    let text = refusal(&schema, Create::Never).await;
    assert!(text.contains(&mark) && text.contains("Run the import again"), "{text}");
    let how =
        Preparation { create: Create::Never, unfinished_import: UnfinishedImport::Accept, confirm: &mut |_| false };
    assert_eq!(prepare(&mut client, &own_name, how).await.expect("the schema"), Prepared::Opened);
    clear_import_mark(&client, &own_name).await.expect("no mark");
    assert_eq!(import_mark(&client, &own_name).await.expect("an answer"), None);
    assert_eq!(make(&schema, Create::Never).await.expect("the schema"), Prepared::Opened);
}

#[tokio::test]
async fn an_operator_s_comment_on_the_schema_is_no_mark_and_stays() {
    let schema = newest().await;
    let own_name = name(schema.name());
    schema.sql(format!("COMMENT ON SCHEMA {own_name} IS 'mine'"));
    assert_eq!(make(&schema, Create::Never).await.expect("the schema"), Prepared::Opened);
    clear_import_mark(&connect(&schema).await, &own_name).await.expect("nothing to do");
    assert_eq!(schema.sql(format!("SELECT obj_description('{own_name}'::regnamespace, 'pg_namespace')")), "mine");
}

#[tokio::test]
async fn without_pgcrypto_nothing_is_made_and_it_is_said_how_to_create_it() {
    let cluster = Cluster::shared();
    let schema = cluster.schema();
    let database = format!("bare_{}", schema.name());
    cluster.sql(format!("CREATE DATABASE {database}"));
    let connector = connector(&cluster.connection().replace("/smp?", &format!("/{database}?")), schema.name());
    let mut client = connector.connect().await.expect("a connection");
    let how = || Preparation {
        create: Create::IfMissing,
        unfinished_import: UnfinishedImport::Refuse,
        confirm: Box::leak(Box::new(|_: Change<'_>| false)),
    };
    let text = prepare(&mut client, connector.schema(), how()).await.expect_err("a refusal").to_string();
    assert!(text.contains("CREATE EXTENSION IF NOT EXISTS pgcrypto;") && text.contains(&database), "{text}");
    let elsewhere = "CREATE SCHEMA elsewhere; CREATE EXTENSION pgcrypto SCHEMA elsewhere";
    client.batch_execute(elsewhere).await.expect("an extension");
    let text = prepare(&mut client, connector.schema(), how()).await.expect_err("a refusal").to_string();
    assert!(text.contains("ALTER EXTENSION pgcrypto SET SCHEMA public"), "{text}");
    client.batch_execute("ALTER EXTENSION pgcrypto SET SCHEMA public").await.expect("a move");
    assert_eq!(prepare(&mut client, connector.schema(), how()).await.expect("a schema"), Prepared::Created);
    drop(client);
    cluster.sql(format!("DROP DATABASE {database} WITH (FORCE)"));
}

#[tokio::test]
async fn a_role_that_may_not_create_schemas_is_told_who_may() {
    let cluster = Cluster::shared();
    let schema = cluster.schema();
    let role = format!("role_{}", schema.name());
    cluster.sql(format!("CREATE ROLE {role} LOGIN"));
    let connector = connector(&cluster.connection().replace("smp@", &format!("{role}@")), schema.name());
    let mut client = connector.connect().await.expect("a connection");
    let how =
        Preparation { create: Create::IfMissing, unfinished_import: UnfinishedImport::Refuse, confirm: &mut |_| false };
    let text = prepare(&mut client, connector.schema(), how).await.expect_err("a refusal").to_string();
    assert!(text.contains(&format!("CREATE SCHEMA {} AUTHORIZATION {role};", schema.name())), "{text}");
    cluster.sql(format!("DROP ROLE {role}"));
}
