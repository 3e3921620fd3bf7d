//! Reading a store log for a command: progress, damage and what had no effect are told.

use std::collections::BTreeMap;
use std::path::Path;

use super::console::Console;
use super::error::CommandError;
use super::transfer::{Progress, Tally};
use crate::store::files::{Ineffective, QueueLog, Replay};

/// Replays a store log; damaged lines are shown and counted in `tally`. Records without effect are only counted: the
/// server that wrote the log would have passed over them as well.
///
/// # Errors
/// The log cannot be read, its scratch file not be written, or the terminal failed.
pub fn replay(log: &Path, tally: &mut Tally, console: &mut Console<'_>) -> Result<QueueLog, CommandError> {
    let mut progress = Progress::new("Reading queues");
    let mut ineffective = BTreeMap::<Ineffective, u64>::new();
    let mut told = Ok(());
    let replayed = QueueLog::replay(log, &mut |event| {
        let tell = match event {
            Replay::Damaged(damage) => tally.damaged(&damage, console),
            Replay::Progress(done, total) => progress.at(Some((done, total)), console),
            Replay::Ineffective { why, .. } => {
                *ineffective.entry(why).or_default() += 1;
                Ok(())
            }
        };
        if told.is_ok() {
            told = tell;
        }
    });
    told?;
    let queues = replayed?;
    drop(progress);
    for (why, count) in ineffective {
        console.say(format_args!("{}: {count} records without effect: {why}", log.display()))?;
    }
    Ok(queues)
}
