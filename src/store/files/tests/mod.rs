//! The reference's files against what the reference found in them, round trips of ours, and hostile files.

mod expected;
mod hostile;
mod round_trip;
mod vectors;

use std::path::{Path, PathBuf};

use super::{Ineffective, QueueLog, Replay};
use crate::store::transfer::{Damage, Item, Source};

/// A file of the vectors.
fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/store").join(name)
}

/// A copy of a file of the vectors: what is replayed has a scratch file beside it.
fn copy_of(name: &str, directory: &Path) -> PathBuf {
    let path = directory.join(name);
    std::fs::copy(vector(name), &path).unwrap();
    path
}

/// Replays a log: what it led to, lines that are damaged, and records without effect.
fn replay(path: &Path) -> (QueueLog, Vec<Damage>, Vec<(u64, Ineffective)>) {
    let (mut damaged, mut ineffective) = (Vec::new(), Vec::new());
    let log = QueueLog::replay(path, &mut |event| match event {
        Replay::Damaged(damage) => damaged.push(damage),
        Replay::Ineffective { line, why } => ineffective.push((line, why)),
        Replay::Progress(done, total) => assert!(done <= total),
    });
    (log.unwrap(), damaged, ineffective)
}

/// Everything that a source yields, and what it finds damaged.
fn read_all(source: &mut dyn Source) -> (Vec<Item>, Vec<Damage>) {
    let (mut items, mut damaged) = (Vec::new(), Vec::new());
    while let Some(item) = source.next(&mut |damage| damaged.push(damage)).unwrap() {
        items.push(item);
    }
    (items, damaged)
}
