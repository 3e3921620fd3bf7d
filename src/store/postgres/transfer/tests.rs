use super::{PostgresSink, PostgresSource};
use crate::protocol::QueueId;
use crate::store::conformance::fixtures;
use crate::store::postgres::cluster::{Cluster, Schema};
use crate::store::postgres::connect::{Connector, DatabaseOptions};
use crate::store::sqlite::transfer::{SqliteSink, SqliteSource};
use crate::store::transfer::testing::{self, Contents};
use crate::store::transfer::{Item, Put, Rejected, Sink, Source};

fn schema() -> (Schema, Connector) {
    let schema = Cluster::shared().schema();
    let connector = connector(&schema);
    (schema, connector)
}

fn connector(schema: &Schema) -> Connector {
    let connection = schema.cluster().connection().as_str().into();
    Connector::new(&DatabaseOptions { connection, schema: schema.name().parse().unwrap() }).unwrap()
}

fn write(connector: &Connector, contents: &Contents) {
    let mut sink = PostgresSink::create(connector).unwrap();
    testing::fill(&mut sink, contents);
    Box::new(sink).finish().unwrap();
}

fn read(connector: &Connector) -> Contents {
    testing::contents(&mut PostgresSource::open(connector).unwrap())
}

fn hex(id: &QueueId) -> String {
    id.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn queue(n: u8) -> Item {
    Item::Queue(Box::new(fixtures::rich_queue(n)))
}

fn message(n: u8, second: u64) -> Item {
    testing::sent(fixtures::recipient(n), second, vec![n; 9].into())
}

#[test]
fn everything_arrives_equal_from_sqlite_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from.db"), directory.path().join("to.db"));
    let contents = Contents::random(3_000, 4);
    let mut sink = SqliteSink::create(&from).unwrap();
    testing::fill(&mut sink, &contents);
    Box::new(sink).finish().unwrap();

    let (schema, connector) = schema();
    let mut source = SqliteSource::open(&from).unwrap();
    let (mut sink, last) = PostgresSink::resume(&connector, &source.mark().unwrap()).unwrap();
    assert_eq!(last, None);
    testing::copy(&mut source, &mut sink);
    Box::new(sink).finish().unwrap();
    assert_eq!(read(&connector), contents);
    assert_eq!(
        schema.sql("SELECT count(*) FROM messages"),
        contents.messages.values().map(Vec::len).sum::<usize>().to_string()
    );

    let mut source = PostgresSource::open(&connector).unwrap();
    let (mut sink, _) = SqliteSink::resume(&to, &source.mark().unwrap()).unwrap();
    testing::copy(&mut source, &mut sink);
    Box::new(sink).finish().unwrap();
    assert_eq!(testing::contents(&mut SqliteSource::open(&to).unwrap()), contents);
    assert_eq!(source.progress().map(|(done, all)| done == all), Some(true));
}

#[test]
fn messages_may_come_after_all_queues() {
    let (_schema, connector) = schema();
    let contents = Contents::random(50, 5);
    let mut sink = PostgresSink::create(&connector).unwrap();
    let (messages, queues): (Vec<_>, Vec<_>) = contents.items().partition(|item| matches!(item, Item::Message(..)));
    for items in [queues, messages] {
        testing::copy(&mut testing::Items(items.into_iter()), &mut sink);
    }
    Box::new(sink).finish().unwrap();
    assert_eq!(read(&connector), contents);
}

#[test]
fn sizes_and_counts_are_those_that_the_other_server_keeps() {
    let (schema, connector) = schema();
    let contents = Contents::random(40, 5);
    write(&connector, &contents);
    for (id, queue) in &contents.queues {
        let messages = contents.messages.get(id).map_or(&[][..], Vec::as_slice);
        let full = messages.iter().any(|message| message.content == crate::store::MessageContent::Quota);
        let sent = messages.len() - usize::from(full);
        let flag = |flag| if flag { "t" } else { "f" };
        let expected = format!("{}|{}|{}", messages.len(), flag(!full), flag(sent > 0));
        let sql = format!(
            "SELECT msg_queue_size, msg_can_write, msg_queue_expire FROM msg_queues WHERE recipient_id = '\\x{}'",
            hex(id)
        );
        assert_eq!(schema.sql(sql), expected, "{queue:?}");
    }
    let of_service = "SELECT bool_and(queue_count = (SELECT count(*) FROM msg_queues WHERE \
                      CASE service_role WHEN 'M' THEN rcv_service_id ELSE ntf_service_id END = service_id)), \
                      sum(queue_count) > 0 FROM services";
    assert_eq!(schema.sql(of_service), "t|t");
}

#[test]
fn taken_ids_and_unknown_queues_are_left_out_and_counted() {
    let (_schema, connector) = schema();
    let mut sink = PostgresSink::create(&connector).unwrap();
    let mut thief = fixtures::queue(2);
    thief.record.sender_id = fixtures::sender(1);
    // Within a page, and against what is written.
    for _ in 0..2 {
        for item in [queue(1), queue(1), Item::Queue(Box::new(thief.clone())), message(1, 1), message(7, 1)] {
            assert_eq!(sink.put(item).unwrap(), Put::Stored);
        }
        sink.write_page().unwrap();
    }
    let rejected = sink.settle().unwrap();
    assert_eq!(rejected, Rejected { duplicate_services: 0, duplicate_queues: 5, messages_without_queue: 2 });
    Box::new(sink).finish().unwrap();
    let contents = read(&connector);
    assert_eq!((contents.queues.len(), contents.messages[&fixtures::recipient(1)].len()), (1, 2));
}

/// Indexes, constraints and enabled triggers of a schema.
fn shape(schema: &Schema) -> String {
    let shape = schema.sql(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1; \
         SELECT conrelid::regclass, conname, convalidated, pg_get_constraintdef(oid) FROM pg_constraint \
         WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2; \
         SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'msg_queues'::regclass ORDER BY tgfoid::regproc::text, tgenabled",
    );
    // Triggers of foreign keys are named by number.
    let lines = shape.lines().filter(|line| !line.starts_with("RI_"));
    lines.map(|line| line.replace(schema.name(), "SCHEMA") + "\n").collect()
}

#[test]
fn what_is_postponed_while_a_schema_is_filled_is_there_afterwards() {
    let (plain, filled, replaced) = (schema(), schema(), schema());
    let session = super::session::Session::open(&plain.1).unwrap();
    session.begin_new_schema().unwrap();
    session.run("COMMIT").unwrap();
    let expected = shape(&plain.0);
    assert!(expected.contains("FOREIGN KEY") && expected.contains("idx_messages"), "{expected}");
    write(&filled.1, &Contents::random(20, 5));
    assert_eq!(shape(&filled.0), expected);
    write(&replaced.1, &Contents::random(20, 6));
    Box::new(PostgresSink::messages(&replaced.1).unwrap()).finish().unwrap();
    assert_eq!(shape(&replaced.0), expected);
}

#[test]
fn an_import_that_is_not_finished_leaves_nothing() {
    let (schema, connector) = schema();
    let mut sink = PostgresSink::create(&connector).unwrap();
    testing::fill(&mut sink, &Contents::random(10, 2));
    drop(sink);
    assert_eq!(schema.sql(format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'", schema.name())), "0");
    write(&connector, &Contents::random(10, 2));
}

#[test]
fn an_interrupted_transfer_goes_on_after_the_last_whole_queue() {
    let contents = Contents::random(60, 5);
    for stop in [1, 20, 90, contents.items().count()] {
        let (schema, connector) = schema();
        let (mut sink, _) = PostgresSink::resume(&connector, "this").unwrap();
        for item in contents.items().take(stop) {
            sink.put(item).unwrap();
            sink.uncommitted = true; // every queue begins a transaction
        }
        drop(sink);
        assert!(PostgresSource::open(&connector).err().unwrap().to_string().contains("interrupted"));
        assert!(PostgresSink::resume(&connector, "another").err().unwrap().to_string().contains("another content"));
        let (mut sink, last) = PostgresSink::resume(&connector, "this").unwrap();
        assert_eq!(last.is_some(), stop >= 20);
        let skip = |item: &Item| match item {
            Item::Queue(queue) => last.is_some_and(|last| queue.record.recipient_id <= last),
            Item::Message(queue, _) => last.is_some_and(|last| *queue <= last),
            Item::Service(_) => false,
        };
        let rest: Vec<_> = contents.items().filter(|item| !skip(item)).collect();
        testing::copy(&mut testing::Items(rest.into_iter()), &mut sink);
        Box::new(sink).finish().unwrap();
        assert_eq!(read(&connector), contents, "{stop}");
        assert_eq!(schema.sql(format!("SELECT obj_description('{}'::regnamespace)", schema.name())), "");
    }
}

#[test]
fn messages_are_replaced_in_a_schema_that_is_there() {
    let (_schema, connector) = schema();
    assert!(PostgresSink::messages(&connector).err().unwrap().to_string().contains("no schema"));
    let contents = Contents::random(20, 3);
    write(&connector, &contents);
    let mut sink = PostgresSink::messages(&connector).unwrap();
    let queue = *contents.queues.keys().next().unwrap();
    sink.put(testing::sent(queue, 5, b"new".to_vec().into())).unwrap();
    assert_eq!(sink.settle().unwrap(), Rejected::default());
    Box::new(sink).finish().unwrap();
    let found = read(&connector);
    assert_eq!((found.queues, found.messages.len()), (contents.queues, 1));
}

#[test]
fn deleted_queues_are_not_read_and_those_after_them_are() {
    let (schema, connector) = schema();
    let mut contents = Contents::random(30, 4);
    write(&connector, &contents);
    for id in contents.queues.keys().copied().step_by(3).collect::<Vec<_>>() {
        schema.sql(format!("UPDATE msg_queues SET deleted_at = 1 WHERE recipient_id = '\\x{}'", hex(&id)));
        contents.queues.remove(&id);
        contents.messages.remove(&id);
    }
    assert_eq!(read(&connector), contents);
}

#[test]
fn a_row_that_cannot_be_read_is_damage() {
    let (schema, connector) = schema();
    let contents = Contents::random(6, 2);
    write(&connector, &contents);
    let ids: Vec<_> = contents.queues.keys().map(hex).collect();
    schema.sql(format!("UPDATE msg_queues SET recipient_keys = 'x' WHERE recipient_id = '\\x{}'", ids[2]));
    // The queue comes all the same.
    schema.sql(format!("UPDATE msg_queues SET link_id = 'x' WHERE recipient_id = '\\x{}'", ids[4]));
    let (mut damages, mut queues) = (Vec::new(), 0);
    let mut source = PostgresSource::open(&connector).unwrap();
    while let Some(item) = source.next(&mut |damage| damages.push(damage.to_string())).unwrap() {
        queues += u32::from(matches!(item, Item::Queue(_)));
    }
    assert_eq!((queues, damages.len()), (5, 2));
    assert!(damages[0].starts_with("msg_queues: the column recipient_keys"), "{damages:?}");
    assert!(damages[1].starts_with("msg_queues: a link's ID"), "{damages:?}");
}

#[test]
fn a_schema_that_exists_or_is_in_use_is_refused() {
    let (_schema, connector) = schema();
    let sink = PostgresSink::create(&connector).unwrap();
    assert!(PostgresSource::open(&connector).err().unwrap().to_string().contains("in use"));
    Box::new(sink).finish().unwrap();
    assert!(PostgresSink::create(&connector).err().unwrap().to_string().contains("exists already"));
}

#[test]
fn a_mark_changes_with_the_content() {
    let (schema, connector) = schema();
    write(&connector, &Contents::random(5, 2));
    let mark = || PostgresSource::open(&connector).unwrap().mark().unwrap();
    let before = mark();
    schema.sql("DELETE FROM messages");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while mark() == before {
        assert!(std::time::Instant::now() < deadline, "{before}");
    }
}
