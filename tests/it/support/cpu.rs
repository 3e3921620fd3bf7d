//! How much a process has computed.

use std::fs;
use std::time::Duration;

/// Length of the ticks in which Linux tells processor times: always 1/100 s.
const TICK: Duration = Duration::from_millis(10);

/// Processor time that a process has used, all threads together.
pub fn processor_time(process_id: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).expect("the process is there");
    // The second field, the name, stands in parentheses; user and system time are the 14th and 15th.
    let (_, fields) = stat.rsplit_once(") ").expect("a name");
    let ticks: u32 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u32>().expect("ticks")).sum();
    TICK * ticks
}
