//! Lines of the store log, the messages log, a journal and the notifications log.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use smp_server::store::files::notification::Notification;
use smp_server::store::files::store_log::StoreLogRecord;
use smp_server::store::files::{LineError, message};
use smp_server_fuzz::{assert_round_trip, written};

/// Records that are written as they were read: not those whose link cannot be kept.
fn record(line: &Bytes) -> Result<StoreLogRecord, Option<LineError>> {
    match StoreLogRecord::read(line).map_err(Some)? {
        StoreLogRecord::CreateQueueWithoutLink(_) | StoreLogRecord::SetUnusableLink { .. } => Err(None),
        record => Ok(record),
    }
}

fuzz_target!(|data: &[u8]| {
    let line = Bytes::copy_from_slice(data);
    assert_round_trip(&line, record, |record| written(|out| record.write(out)));
    assert_round_trip(&line, |line| message::read(line), |read| written(|out| message::write(out, read)));
    assert_round_trip(
        &line,
        |line| message::read_logged(line),
        |(queue, read)| written(|out| message::write_logged(out, queue, read)),
    );
    assert_round_trip(&line, |line| Notification::read(line), |read| written(|out| read.write(out)));
});
