//! The catalog's facts of our schema are the reference's, entry by entry.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::*;

/// Facts by kind and name.
type Facts = BTreeMap<String, BTreeMap<String, Value>>;

#[derive(serde::Deserialize)]
struct Expected {
    newest: Facts,
    levels: BTreeMap<String, Facts>,
}

static EXPECTED: LazyLock<Expected> = LazyLock::new(|| {
    let text = include_str!("../../../../../tests/vectors/store/postgres-schema.json");
    serde_json::from_str(text).expect("facts")
});

fn facts(schema: &Schema) -> Facts {
    let json = schema.cluster().sql(format!("SET search_path TO {}; {}", schema.name(), include_str!("../facts.sql")));
    serde_json::from_str(&json).expect("facts")
}

/// Everything in which two schemas differ; `position`s of columns count only if they are to.
fn differences(expected: &Facts, found: &Facts, positions: bool) -> Vec<String> {
    let flatten = |facts: &Facts| -> BTreeMap<String, Value> {
        let entries = facts.iter().flat_map(|(kind, named)| named.iter().map(move |(name, fact)| (kind, name, fact)));
        let entries = entries.map(|(kind, name, fact)| {
            let mut fact = fact.clone();
            if let (false, Some(column)) = (positions, fact.as_object_mut()) {
                column.remove("position");
            }
            (format!("{kind} {name}"), fact)
        });
        entries.collect()
    };
    let (expected, found) = (flatten(expected), flatten(found));
    let names: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let differing = names.into_iter().filter(|name| expected.get(*name) != found.get(*name));
    differing.map(|name| format!("{name}: expected {:?}, found {:?}", expected.get(name), found.get(name))).collect()
}

const NONE: [String; 0] = [];

#[tokio::test]
async fn a_new_schema_is_the_reference_s_in_every_entry() {
    let schema = newest().await;
    let found = facts(&schema);
    assert_eq!(differences(&EXPECTED.newest, &found, true), NONE);
    assert_eq!(found["columns"].len(), 37, "the facts are of all tables");
    assert_eq!(found["functions"].len(), 12, "and of all functions");
}

#[tokio::test]
async fn a_difference_in_the_schema_is_found() {
    let schema = newest().await;
    schema.sql(
        "ALTER TABLE messages ADD COLUMN ours TEXT; DROP INDEX idx_msg_queues_link_id; \
         ALTER TABLE msg_queues ALTER COLUMN msg_can_write DROP DEFAULT",
    );
    let found = differences(&EXPECTED.newest, &facts(&schema), true);
    let starts =
        ["columns messages.ours", "columns msg_queues.msg_can_write", "indexes idx_msg_queues_link_id", "relations "];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    assert!(found.iter().zip(starts).all(|(found, start)| found.starts_with(start)), "{found:#?}");
}

#[tokio::test]
async fn each_level_is_the_reference_s_and_leads_to_the_newest() {
    for level in 1..=MIGRATIONS.len() {
        let schema = at_level(level).await;
        let last = MIGRATIONS[level - 1].name;
        assert_eq!(differences(&EXPECTED.levels[last], &facts(&schema), true), NONE, "{last}");
        let made = make_with(&schema, Create::Never, |_| true).await.expect("a way up");
        let expected = if level == MIGRATIONS.len() { Prepared::Opened } else { Prepared::Migrated(6 - level) };
        assert_eq!(made, expected);
        assert_eq!(differences(&EXPECTED.newest, &facts(&schema), true), NONE, "from {last}");
        assert_eq!(levels(&schema), names(0..6).join(" "));
    }
}

#[tokio::test]
async fn down_texts_in_the_database_bring_back_each_older_level() {
    let schema = newest().await;
    let mut client = connect(&schema).await;
    for level in (1..MIGRATIONS.len()).rev() {
        super::super::run::down(&mut client, &name(schema.name()), &[MIGRATIONS[level].name])
            .await
            .expect("a way down");
        let last = MIGRATIONS[level - 1].name;
        // A column that was dropped comes back as the last one.
        assert_eq!(differences(&EXPECTED.levels[last], &facts(&schema), false), NONE, "down to {last}");
        assert_eq!(levels(&schema), names(0..level).join(" "));
    }
    let first = schema.sql("SELECT down IS NULL FROM migrations");
    assert_eq!(first, "t", "the first cannot be undone");
    make_with(&schema, Create::Never, |_| true).await.expect("and up again");
    assert_eq!(differences(&EXPECTED.newest, &facts(&schema), false), NONE);
}

const OLD_ROWS: &str = "
    INSERT INTO msg_queues (recipient_id, recipient_key, rcv_dh_secret, sender_id, snd_secure, status, updated_at)
      VALUES ('r1', '\\x302a7f', 'd1', 's1', TRUE, 'active', 20000), ('r2', 'key', 'd2', 's2', FALSE, 'off', NULL)";

const KEYS: &str = "SELECT recipient_id, recipient_keys, sender_id, queue_mode, status, updated_at, msg_queue_size, \
    msg_can_write, msg_queue_expire FROM msg_queues ORDER BY 1";

#[tokio::test]
async fn rows_of_the_first_level_are_kept_and_converted_up_and_down() {
    let schema = at_level(1).await;
    schema.sql(OLD_ROWS);
    let old = "SELECT recipient_id, recipient_key, rcv_dh_secret, sender_id, snd_secure, status, updated_at FROM msg_queues \
        ORDER BY 1";
    let before = schema.sql(old);
    make_with(&schema, Create::Never, |_| true).await.expect("a way up");
    let expected = "\\x7231|\\x0103302a7f|\\x7331|M|active|20000|0|t|f\n\\x7232|\\x01036b6579|\\x7332||off||0|t|f";
    assert_eq!(schema.sql(KEYS), expected);

    let mut client = connect(&schema).await;
    let down: Vec<&str> = names(1..6).into_iter().rev().collect();
    super::super::run::down(&mut client, &name(schema.name()), &down).await.expect("a way down");
    assert_eq!(schema.sql(old), before);
}

#[tokio::test]
async fn a_queue_with_two_recipient_keys_keeps_the_schema_from_going_down() {
    let schema = at_level(3).await;
    schema.sql(
        "INSERT INTO msg_queues (recipient_id, recipient_keys, rcv_dh_secret, sender_id, status) \
         VALUES ('r', '\\x020161016b', 'd', 's', 'active')",
    );
    let before = facts(&schema);
    let mut client = connect(&schema).await;
    let error = super::super::run::down(&mut client, &name(schema.name()), &["20250320_short_links"]).await;
    let text = error.expect_err("a refusal").to_string();
    assert!(text.contains("20250320_short_links") && text.contains("more than one recipient key"), "{text}");
    assert_eq!(differences(&before, &facts(&schema), true), NONE);
    assert_eq!(levels(&schema), names(0..3).join(" "));
}

#[tokio::test]
async fn services_of_an_older_level_are_counted_when_their_counts_come_in() {
    let schema = at_level(5).await;
    schema.sql(
        "INSERT INTO services VALUES ('sM', 'M', 'c', 'h1', 1), ('sN', 'N', 'c', 'h2', 1), ('s0', 'M', 'c', 'h3', 1); \
         INSERT INTO msg_queues (recipient_id, recipient_keys, rcv_dh_secret, sender_id, status, notifier_id, rcv_service_id, \
            ntf_service_id, deleted_at) \
         VALUES ('r1', 'k', 'd', 's1', 'active', 'n1', 'sM', 'sN', NULL), ('r2', 'k', 'd', 's2', 'active', NULL, 'sM', NULL, \
            NULL), ('r3', 'k', 'd', 's3', 'active', 'n3', 'sM', 'sN', 20000)",
    );
    make_with(&schema, Create::Never, |_| true).await.expect("a way up");
    let found = schema.sql("SELECT service_id, queue_count, encode(queue_ids_hash, 'hex') FROM services ORDER BY 1");
    // MD5 of r1 and of r2 combined; MD5 of n1.
    let combined = schema.sql("SELECT encode(xor_combine(decode(md5('r1'), 'hex'), decode(md5('r2'), 'hex')), 'hex')");
    let n1 = schema.sql("SELECT md5('n1')");
    assert_eq!(found, format!("\\x7330|0|{}\n\\x734d|2|{combined}\n\\x734e|1|{n1}", "0".repeat(32)));
}
