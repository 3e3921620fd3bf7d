//! Files with anything in them: no panic, and the right line is named.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::{read_all, replay, vector};
use crate::store::files::notification::Notification;
use crate::store::files::store_log::StoreLogRecord;
use crate::store::files::{Ineffective, JournalDirectory, MAX_LINE_BYTES, MessageLog, message};
use crate::store::transfer::Item;

/// Every line of the vectors, of every kind.
fn all_lines() -> Vec<Vec<u8>> {
    let names = [
        "smp-server-store.log",
        "smp-server-store-old.log",
        "smp-server-messages.log",
        "smp-server-messages-old.log",
        "smp-server-ntfs.log",
    ];
    let texts = names.iter().map(|name| fs::read(vector(name)).unwrap());
    texts.flat_map(|text| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
}

/// Reads a line as each kind; what is read is read again from what is written of it.
fn read_as_everything(line: &[u8]) {
    if let Ok(record) = StoreLogRecord::read(line) {
        let mut written = Vec::new();
        record.write(&mut written);
        let again = StoreLogRecord::read(&written);
        let without_link =
            matches!(record, StoreLogRecord::CreateQueueWithoutLink(_) | StoreLogRecord::SetUnusableLink { .. });
        assert!(without_link || again == Ok(record));
    }
    if let Ok((queue, read)) = message::read_logged(line) {
        let mut written = Vec::new();
        message::write_logged(&mut written, &queue, &read);
        assert_eq!(message::read_logged(&written), Ok((queue, read)));
    }
    if let Ok(notification) = Notification::read(line) {
        let mut written = Vec::new();
        notification.write(&mut written);
        assert_eq!(Notification::read(&written), Ok(notification));
    }
}

#[test]
fn a_line_may_be_cut_anywhere() {
    for line in all_lines() {
        (0..=line.len()).for_each(|end| read_as_everything(&line[..end]));
    }
}

proptest! {
    #[test]
    fn a_line_may_hold_any_bytes(line in prop::collection::vec(any::<u8>(), 0..200)) {
        read_as_everything(&line);
    }

    #[test]
    fn a_line_may_have_any_bytes_changed(
        line in prop::sample::select(all_lines()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut line = line;
        for (at, byte) in changes {
            if !line.is_empty() {
                let at = at.index(line.len());
                line[at] = byte;
            }
        }
        read_as_everything(&line);
    }
}

/// Writes a file of `lines`.
fn file(path: &Path, lines: &[&[u8]]) {
    fs::write(path, [&lines.join(&b"\n"[..])[..], b"\n"].concat()).unwrap();
}

#[test]
fn a_last_line_without_an_end_was_cut_however_good_it_looks() {
    let directory = tempfile::tempdir().unwrap();
    let (messages, queues) = (directory.path().join("messages.log"), directory.path().join("store.log"));
    // A body that was longer, and a queue that was blocked.
    let message = "v3 KqCHNCMjCJ0FBSBoYBoVKLfVEr4z2Akk UnyihhwA3Ag8KXi1eiHBUe_Y37nTmk54 1700000003 flags=T eHh4";
    fs::write(&messages, format!("{message}\n{message}")).unwrap();
    let (items, damaged) = read_all(&mut MessageLog::open(&messages).unwrap());
    assert_eq!((items.len(), damaged.len(), damaged[0].line), (1, 1, 2));
    let text = fs::read_to_string(vector("smp-server-store.compacted.log")).unwrap();
    let create = text.lines().find(|line| line.contains(" status=blocked")).unwrap();
    fs::write(&queues, create.split_once(" status=").unwrap().0).unwrap();
    let (log, damaged, _) = replay(&queues);
    assert_eq!((log.counts(), damaged.len(), damaged[0].line), ((0, 0), 1, 1));
}

#[test]
fn damaged_lines_are_told_with_their_numbers_and_without_their_content() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("messages.log");
    let good = b"v3 KqCHNCMjCJ0FBSBoYBoVKLfVEr4z2Akk UnyihhwA3Ag8KXi1eiHBUe_Y37nTmk54 1700000003 flags=T eA==";
    let huge = vec![b'x'; MAX_LINE_BYTES + 1];
    let binary = [0, 255, 13, 9, 200];
    let cut = &good[..good.len() - 1];
    file(&path, &[good, &huge, b"", &binary, good, cut]);
    let (items, damaged) = read_all(&mut MessageLog::open(&path).unwrap());
    assert_eq!(items.len(), 2);
    assert_eq!(damaged.iter().map(|damage| damage.line).collect::<Vec<_>>(), [2, 3, 4, 6]);
    for damage in damaged {
        assert_eq!(damage.file, path);
        assert!(!damage.reason.contains("KqCHNC") && damage.reason.len() < 80, "{damage}");
    }
}

#[test]
fn lines_of_the_greatest_length_are_read_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.log");
    let link = vec![b'A'; MAX_LINE_BYTES - 71];
    let line = [b"LINK AkTHLeWvnKFSE7YVQ3zTXG9EsuDGM7NP AkTHLeWvnKFSE7YVQ3zTXG9EsuDGM7NP ", &link[..]].concat();
    assert_eq!(line.len(), MAX_LINE_BYTES);
    file(&path, &[&line, &[&line[..], b"A"].concat()]);
    let (_, damaged, _) = replay(&path);
    let reasons: Vec<_> = damaged.iter().map(|damage| (damage.line, damage.reason.as_str())).collect();
    assert_eq!(reasons, [(1, "a link's data is not in Base64"), (2, "the line is too long")]);
}

#[test]
fn a_blocked_queue_with_notice_and_service_and_one_with_an_empty_link_id_are_taken() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.log");
    let text = fs::read_to_string(vector("smp-server-store.compacted.log")).unwrap();
    let create = |id: &str| text.lines().find(|line| line.starts_with(&format!("CREATE rid={id}"))).unwrap();
    let service = text.lines().find(|line| line.contains("role=M")).unwrap();
    let blocked = format!("{} rsrv=vl4Oeqx8pEAcYKMpiMz-7-hbZC9RjXmJ", create("suS0"));
    let linked = create("KrNa").replace("link_id=qZY7F3GVGoUofzNHuNL28-NuA4vmNUg3", "link_id=");
    let set = "LINK AkTHLeWvnKFSE7YVQ3zTXG9EsuDGM7NP  Zg== dQ==";
    file(&path, &[service, &blocked, &linked, create("AkTH"), set].map(str::as_bytes));
    let (mut log, damaged, ineffective) = replay(&path);
    assert!(damaged.is_empty(), "{damaged:?}");
    assert_eq!(ineffective, [(3, Ineffective::UnusableLink), (5, Ineffective::UnusableLink)]);
    let (items, _) = read_all(&mut log);
    assert_eq!(items.len(), 4);
    for item in &items {
        let Item::Queue(queue) = item else { continue };
        assert!(queue.link_data.is_none() && queue.record.link_id.is_none());
        let is_blocked = queue.record.status != crate::store::QueueStatus::Active;
        assert_eq!(queue.record.recipient_service.is_some(), is_blocked);
    }
}

#[test]
fn records_without_effect_are_told_from_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.log");
    let text = fs::read_to_string(vector("smp-server-store.compacted.log")).unwrap();
    let create = |id: &str| text.lines().find(|line| line.starts_with(&format!("CREATE rid={id}"))).unwrap();
    let services: Vec<_> = text.lines().filter(|line| line.starts_with("NEW_SERVICE")).collect();
    let notifier = "NOTIFIER AkTHLeWvnKFSE7YVQ3zTXG9EsuDGM7NP AMdc95xhusgIu23cByyZsIWYhuL3a6LI \
                    MCowBQYDK2VuAyEA3Dl_nJ6gqx-HtSmS-v58BfcSlGUZCSjfOLddnsEkWwA= \
                    0uI6rwRhZxJ7tehJCTNK7G7joBszeZlKh1pUzxByKBY=";
    let other_role = services[0].replace("role=N", "role=M");
    let other_id = services[0].replace("service_id=AWqH", "service_id=BWqH");
    let lines = [
        services[0],
        services[0],
        &other_role,
        &other_id,
        create("AkTH"),
        // Its own notifier again.
        notifier,
        create("Eimy"),
        "QUEUE_SERVICE Eimy2lyz8luuekqSldnkth-WpRxbfaOe N AWqHSmz0FQ-_l73vwmWqaNa6QBln3E7d",
        "QUEUE_SERVICE Eimy2lyz8luuekqSldnkth-WpRxbfaOe R vl4Oeqx8pEAcYKMpiMz-7-hbZC9RjXmJ",
        "DELETE Eimy2lyz8luuekqSldnkth-WpRxbfaOe",
        create("Eimy"),
        "DELETE Eimy2lyz8luuekqSldnkth-WpRxbfaOe",
        // Belongs to a service that the log does not have.
        create("ogWo"),
    ];
    file(&path, &lines.map(str::as_bytes));
    let (log, damaged, ineffective) = replay(&path);
    assert!(damaged.is_empty(), "{damaged:?}");
    use Ineffective as Why;
    let expected = [
        (3, Why::ServiceConflict),
        (4, Why::ServiceConflict),
        (6, Why::Duplicate),
        (8, Why::Conflict),
        (11, Why::Duplicate),
        (12, Why::DeletedQueue),
        (0, Why::UnknownService),
    ];
    assert_eq!(ineffective, expected);
    assert_eq!(log.counts(), (1, 2));
    let known = crate::protocol::crypto::test_vectors::unhex("0244c72de5af9ca15213b615437cd35c6f44b2e0c633b34f");
    assert!(log.contains(&crate::protocol::QueueId::from_slice(&known).unwrap()).unwrap());
    assert!(!log.contains(&crate::protocol::QueueId([7; 24])).unwrap());
}

#[test]
fn a_file_that_is_not_there_is_an_error_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none");
    let errors = [
        MessageLog::open(&path).err().unwrap(),
        JournalDirectory::open(&path).err().unwrap(),
        crate::store::files::QueueLog::replay(&path, &mut |_| {}).err().unwrap(),
    ];
    errors.iter().for_each(|error| assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
