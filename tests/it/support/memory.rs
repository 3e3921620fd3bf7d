//! How much memory a process has.

use std::fs;

/// Resident memory of a process in KiB.
pub fn resident_kib(process_id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process_id}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
