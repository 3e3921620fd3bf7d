//! A full disk: refused with `ERR STORE`, nothing lost, and at work again once there is space, without a restart.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tempfile::TempDir;

use super::{ACCOUNTS, AtWork, accounts, verify};
use crate::support::load::Load;
use crate::support::random::seed;
use crate::support::{Installation, Server};

/// Space for the store: some hundred messages.
const SPACE: u64 = 2 * 1024 * 1024;

/// Commands that the store refuses, and that are answered again once there is space.
const COMMANDS: u64 = 100;

/// The accounts work while the disk is full and after `make_space`; then everything is verified, before and after a crash.
fn full_and_recovered(seed: u64, server: Server, make_space: impl FnOnce(&Server)) -> Server {
    let work = AtWork::begin(accounts(seed), &server, Load::until_refused(COMMANDS)).wait();
    make_space(&server);
    work.load.go_on_for(COMMANDS);
    let work = work.wait();
    work.load.end();
    println!("{} answers with {ACCOUNTS} clients, the disk full and not", work.load.answered());
    let mut accounts = work.end();
    verify(&mut accounts, &server);
    let server = server.crash_and_restart();
    verify(&mut accounts, &server);
    server
}

#[test]
fn files_that_may_not_grow_are_refused_and_recovered_from() {
    let installation = Installation::new();
    // Whoever writes past the limit is told so, once the signal for it is ignored.
    let start = installation.command(&["start"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" start"]).arg(start.get_program());
    shell.envs(start.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let server = Server::start_by(shell, installation);
    limit_files(&server, Some(SPACE));
    full_and_recovered(seed("files that may not grow"), server, |server| limit_files(server, None));
}

/// Limits how large the server's files may grow, in bytes.
fn limit_files(server: &Server, bytes: Option<u64>) {
    let process = Pid::from_raw(i32::try_from(server.process_id()).expect("a process ID")).expect("a process ID");
    prlimit(Some(process), Resource::Fsize, Rlimit { current: bytes, maximum: None }).expect("the limit can be set");
}

#[test]
fn a_full_disk_is_refused_and_recovered_from() {
    let Some(disk) = SmallDisk::new() else {
        return println!("*** NOT RUN: a full disk: only root can mount a small one");
    };
    let installation = Installation::new();
    fs::remove_dir_all(installation.log()).expect("the store's directory can be removed");
    symlink(disk.path(), installation.log()).expect("a link");
    let server = Server::start_in(installation);
    let server = full_and_recovered(seed("a full disk"), server, |_| disk.resize(32 * SPACE));
    // Before the disk is.
    drop(server);
}

/// A file system in memory, unmounted when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// Absent where it cannot be mounted.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mounted = mount(&format!("size={SPACE}"), directory.path());
        mounted.then(|| SmallDisk(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn resize(&self, bytes: u64) {
        assert!(mount(&format!("remount,size={bytes}"), self.path()), "the disk can be resized");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Without success the directory stays, which is seen.
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

fn mount(options: &str, directory: &Path) -> bool {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", options, "smp-server-test"]).arg(directory);
    mount.output().is_ok_and(|output| output.status.success())
}
