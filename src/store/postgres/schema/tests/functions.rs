//! What the functions do that the Haskell server calls by name.

use super::*;

/// A schema with the queue `r`.
async fn with_queue() -> Schema {
    let schema = newest().await;
    add_queue(&schema, "r");
    schema
}

fn add_queue(schema: &Schema, id: &str) {
    schema.sql(format!(
        "INSERT INTO msg_queues (recipient_id, recipient_keys, rcv_dh_secret, sender_id, status, updated_at) \
         VALUES ('{id}', 'k', 'd', 's-{id}', 'active', 20000)"
    ));
}

/// Writes a message with this ID and time, the quota being 2; answers `quota_written|was_empty`.
fn write(schema: &Schema, id: &str, time: i64) -> String {
    schema.sql(format!("SELECT * FROM write_message('r', '{id}', {time}, FALSE, TRUE, 'body', 2)"))
}

/// `size|can_write|expire` of the queue `r`.
fn counters(schema: &Schema) -> String {
    schema.sql("SELECT msg_queue_size, msg_can_write, msg_queue_expire FROM msg_queues WHERE recipient_id = 'r'")
}

/// The queue's messages, as `id/quota`.
fn messages(schema: &Schema) -> String {
    schema.sql(
        "SELECT string_agg(convert_from(msg_id, 'UTF8') || '/' || msg_quota, ' ' ORDER BY message_id) FROM messages",
    )
}

fn call(schema: &Schema, function: &str, id: &str) -> String {
    schema.sql(format!(
        "SELECT convert_from(r_msg_id, 'UTF8'), r_msg_ts, r_msg_quota, r_msg_ntf_flag, convert_from(r_msg_body, 'UTF8') \
         FROM {function}('r', '{id}')"
    ))
}

#[tokio::test]
async fn write_message_fills_a_queue_up_to_a_marker_and_then_writes_nothing() {
    let schema = with_queue().await;
    assert_eq!(write(&schema, "a", 1), "f|t");
    assert_eq!(counters(&schema), "1|t|t");
    assert_eq!(write(&schema, "b", 2), "f|f");
    assert_eq!(write(&schema, "c", 3), "t|f");
    assert_eq!(counters(&schema), "3|f|t");
    assert_eq!(write(&schema, "d", 4), "");
    assert_eq!(messages(&schema), "a/false b/false c/true");
    let marker = schema.sql("SELECT msg_ntf_flag, octet_length(msg_body), msg_ts FROM messages WHERE msg_quota");
    assert_eq!(marker, "f|0|3", "a marker has no body and asks for no notification");
    let own = schema.sql("SELECT * FROM write_message('none', 'a', 1, FALSE, TRUE, 'body', 2)");
    assert_eq!(own, "", "there is no such queue");
}

#[tokio::test]
async fn write_message_takes_the_marker_of_an_import_and_writes_to_a_queue_that_is_empty() {
    let schema = with_queue().await;
    assert_eq!(schema.sql("SELECT * FROM write_message('r', 'a', 1, TRUE, TRUE, 'body', 2)"), "t|t");
    assert_eq!(counters(&schema), "1|f|t");
    schema.sql("DELETE FROM messages; UPDATE msg_queues SET msg_queue_size = 0");
    assert_eq!(write(&schema, "b", 2), "f|t", "nothing stands before it, whatever msg_can_write says");
    schema.sql("UPDATE msg_queues SET deleted_at = 1");
    assert_eq!(write(&schema, "c", 3), "");
}

#[tokio::test]
async fn try_del_msg_deletes_the_first_message_only() {
    let schema = with_queue().await;
    ["a", "b", "c"].iter().enumerate().for_each(|(at, id)| drop(write(&schema, id, at as i64)));
    assert_eq!(call(&schema, "try_del_msg", "b"), "");
    assert_eq!(call(&schema, "try_del_msg", "a"), "a|0|f|t|body");
    assert_eq!(counters(&schema), "2|f|t", "it takes messages only once it is empty");
    assert_eq!(call(&schema, "try_del_msg", "b"), "b|1|f|t|body");
    assert_eq!(counters(&schema), "1|f|t");
    assert_eq!(call(&schema, "try_del_msg", "c"), "c|2|t|f|");
    assert_eq!(counters(&schema), "0|t|f");
    assert_eq!(call(&schema, "try_del_msg", "c"), "");
    schema.sql("UPDATE msg_queues SET msg_queue_size = 7, msg_can_write = FALSE, msg_queue_expire = TRUE");
    assert_eq!(call(&schema, "try_del_msg", "c"), "");
    assert_eq!(counters(&schema), "0|t|f", "a wrong count is mended");
}

#[tokio::test]
async fn try_del_peek_msg_answers_the_deleted_and_the_next_message() {
    let schema = with_queue().await;
    write(&schema, "a", 0);
    write(&schema, "b", 1);
    assert_eq!(call(&schema, "try_del_peek_msg", "x"), "a|0|f|t|body", "only the first, not deleted");
    assert_eq!(call(&schema, "try_del_peek_msg", "a"), "a|0|f|t|body\nb|1|f|t|body");
    assert_eq!(counters(&schema), "1|t|t");
    schema.sql("UPDATE msg_queues SET msg_queue_size = 5, msg_can_write = FALSE");
    assert_eq!(call(&schema, "try_del_peek_msg", "b"), "b|1|f|t|body");
    assert_eq!(counters(&schema), "0|t|f", "the last one leaves the count at 0, whatever it was");
    assert_eq!(call(&schema, "try_del_peek_msg", "b"), "");
    schema.sql("UPDATE msg_queues SET deleted_at = 1");
    assert_eq!(call(&schema, "try_del_peek_msg", "b"), "");
}

#[tokio::test]
async fn delete_expired_msgs_deletes_up_to_the_first_that_is_not_old_and_no_markers() {
    let schema = with_queue().await;
    for (id, time) in [("a", 1), ("b", 9), ("c", 2)] {
        schema.sql(format!("SELECT write_message('r', '{id}', {time}, FALSE, TRUE, 'body', 3)"));
    }
    write(&schema, "marker", 0);
    assert_eq!(schema.sql("SELECT delete_expired_msgs('r', 5)"), "1");
    assert_eq!(messages(&schema), "b/false c/false marker/true", "c came after b, which stays");
    assert_eq!(counters(&schema), "3|f|t");
    assert_eq!(schema.sql("SELECT delete_expired_msgs('r', 5)"), "0");
    assert_eq!(schema.sql("SELECT delete_expired_msgs('r', 10)"), "2");
    assert_eq!(messages(&schema), "marker/true");
    assert_eq!(counters(&schema), "1|f|f", "nothing that could expire is left");
    assert_eq!(schema.sql("SELECT delete_expired_msgs('none', 10)"), "0");
}

#[tokio::test]
async fn delete_expired_msgs_passes_a_queue_over_that_is_locked() {
    let schema = with_queue().await;
    write(&schema, "a", 1);
    let mut other = connect(&schema).await;
    let transaction = other.transaction().await.expect("a transaction");
    transaction.execute("SELECT FROM msg_queues FOR UPDATE", &[]).await.expect("a lock");
    assert_eq!(schema.sql("SELECT delete_expired_msgs('r', 5)"), "0");
    transaction.rollback().await.expect("the end of the lock");
    assert_eq!(schema.sql("SELECT delete_expired_msgs('r', 5)"), "1");
}

#[tokio::test]
async fn expire_old_messages_goes_through_all_queues_in_use_and_counts_the_rest() {
    let schema = with_queue().await;
    for id in ["q1", "q2", "q3", "unused"] {
        add_queue(&schema, id);
        schema.sql(format!(
            "SELECT write_message('{id}', 'old', 1, FALSE, TRUE, 'b', 9), \
             write_message('{id}', 'new', 9, FALSE, TRUE, 'b', 9)"
        ));
    }
    schema.sql("UPDATE msg_queues SET updated_at = 10 WHERE recipient_id = 'unused'");
    // Expired messages, messages left, queues: with fewer queues a batch than there are, and again.
    let call = |schema: &Schema| {
        let path = format!("SELECT set_config('search_path', '{}', false)", schema.name());
        schema.cluster().sql_each(&[&path, "CALL expire_old_messages(15, 5, 2, 0, 0, 0)"])
    };
    assert!(call(&schema).ends_with("3|5|5"));
    assert!(call(&schema).ends_with("0|5|5"));
    assert_eq!(schema.sql("SELECT count(*) FROM messages WHERE msg_ts = 1"), "1", "of the queue that is not in use");
}

#[tokio::test]
async fn services_count_their_queues_and_combine_the_hashes_of_their_ids() {
    let schema = newest().await;
    schema.sql(
        "INSERT INTO services VALUES ('sM', 'M', 'c', 'h1', 1), ('sN', 'N', 'c', 'h2', 1), ('s2', 'M', 'c', 'h3', 1)",
    );
    let none = "0".repeat(32);
    let md5 = |text: &str| schema.sql(format!("SELECT md5('{text}')"));
    let services = || {
        let rows =
            schema.sql("SELECT queue_count || ' ' || encode(queue_ids_hash, 'hex') FROM services ORDER BY service_id");
        rows.split('\n').map(str::to_owned).collect::<Vec<_>>()
    };
    // In the order s2, sM, sN.
    add_queue(&schema, "r");
    assert_eq!(services(), [format!("0 {none}"), format!("0 {none}"), format!("0 {none}")]);
    schema.sql("UPDATE msg_queues SET rcv_service_id = 'sM', ntf_service_id = 'sN'");
    assert_eq!(services(), [format!("0 {none}"), format!("1 {}", md5("r")), format!("0 {none}")]);
    schema.sql("UPDATE msg_queues SET notifier_id = 'n'");
    assert_eq!(services(), [format!("0 {none}"), format!("1 {}", md5("r")), format!("1 {}", md5("n"))]);
    schema.sql("UPDATE msg_queues SET rcv_service_id = 's2', notifier_id = 'm'");
    assert_eq!(services(), [format!("1 {}", md5("r")), format!("0 {none}"), format!("1 {}", md5("m"))]);
    schema.sql("UPDATE services SET queue_count = 7 WHERE service_id = 's2'; SELECT update_all_aggregates()");
    assert_eq!(services(), [format!("1 {}", md5("r")), format!("0 {none}"), format!("1 {}", md5("m"))]);
    schema.sql("UPDATE msg_queues SET deleted_at = 1");
    assert_eq!(services(), [format!("0 {none}"), format!("0 {none}"), format!("0 {none}")]);
    schema.sql("DELETE FROM msg_queues");
    assert_eq!(services(), [format!("0 {none}"), format!("0 {none}"), format!("0 {none}")], "not counted twice");
    schema.sql(
        "INSERT INTO msg_queues (recipient_id, recipient_keys, rcv_dh_secret, sender_id, status, notifier_id, \
            rcv_service_id, ntf_service_id) VALUES ('q', 'k', 'd', 's', 'active', 'n', 'sM', 'sN')",
    );
    assert_eq!(services(), [format!("0 {none}"), format!("1 {}", md5("q")), format!("1 {}", md5("n"))]);
    schema.sql("DELETE FROM msg_queues");
    assert_eq!(services(), [format!("0 {none}"), format!("0 {none}"), format!("0 {none}")]);
}

#[tokio::test]
async fn xor_combine_wants_values_of_one_length() {
    let schema = newest().await;
    assert_eq!(schema.sql(r"SELECT xor_combine('\x0ff0', '\xff01')"), r"\xf0f1");
    assert_eq!(schema.sql("SELECT xor_combine(NULL, 'a') IS NULL"), "t");
    let client = connect(&schema).await;
    let error = client.batch_execute("SELECT xor_combine('ab', 'a')").await.expect_err("a refusal");
    assert_eq!(error.code().map(|code| code.code().to_owned()).as_deref(), Some("P0001"));
}
