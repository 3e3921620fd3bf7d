//! A full disk: refused with `ERR STORE`, nothing lost, and at work again once there is space, without a restart.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tempfile::TempDir;

use super::{ACCOUNTS, AtWork, accounts, verify};
use crate::support::load::Load;
use crate::support::random::seed;
use crate::support::{Installation, Server};

/// Space for the store: less than its write-ahead log may take, with which it grows.
const FEW_BYTES: u64 = 2 * 1024 * 1024;

/// The size of the small disk: more than the store takes under this load.
const DISK_BYTES: u64 = 32 * 1024 * 1024;

/// Commands that are answered before there is no space, refused meanwhile, and answered afterwards.
const COMMANDS: [u64; 3] = [300, 100, 300];

/// The accounts work before there is no space, without space, and when there is space again; then everything is verified,
/// before and after a crash.
fn full_and_recovered(seed: u64, server: Server, take_space: impl FnOnce(&Server), give_space: impl FnOnce(&Server)) {
    let [before, without, after] = COMMANDS;
    let work = AtWork::begin(accounts(seed), &server, Load::new(before)).wait();
    work.load.go_on_until_refused(without);
    take_space(&server);
    let work = work.wait();
    give_space(&server);
    work.load.go_on_for(after);
    let work = work.wait();
    work.load.end();
    let (answered, refused) = work.load.counts();
    println!("{answered} commands of {ACCOUNTS} clients answered, {refused} refused");
    let mut accounts = work.end();
    verify(&mut accounts, &server);
    verify(&mut accounts, &server.crash_and_restart());
}

#[test]
fn files_that_may_not_grow_are_refused_and_recovered_from() {
    let installation = Installation::new();
    // Whoever writes past the limit is told so, once the signal for it is ignored.
    let start = installation.command(&["start"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" start"]).arg(start.get_program());
    shell.envs(start.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = Server::start_by(shell, installation);
    let seed = seed("files that may not grow");
    full_and_recovered(seed, server, |server| limit_files(server, Some(FEW_BYTES)), |server| limit_files(server, None));
}

/// Limits how large the server's files may grow, in bytes.
fn limit_files(server: &Server, bytes: Option<u64>) {
    let process = Pid::from_raw(i32::try_from(server.process_id()).expect("a process ID")).expect("a process ID");
    prlimit(Some(process), Resource::Fsize, Rlimit { current: bytes, maximum: None }).expect("the limit can be set");
}

#[test]
fn a_full_disk_is_refused_and_recovered_from() {
    let Some((disk, server)) = server_on_small_disk() else { return };
    let take_space = |_: &Server| disk.fill_up();
    let give_space = |_: &Server| disk.make_space();
    full_and_recovered(seed("a full disk"), server, take_space, give_space);
}

#[test]
fn kill_9_while_the_disk_is_full_loses_nothing_that_was_answered() {
    let Some((disk, server)) = server_on_small_disk() else { return };
    let [before, without, _] = COMMANDS;
    let work = AtWork::begin(accounts(seed("kill -9 while the disk is full")), &server, Load::new(before)).wait();
    work.load.go_on_until_refused(without);
    disk.fill_up();
    let work = work.wait();
    work.load.end();
    let stopped = server.kill();
    disk.make_space();
    verify(&mut work.end(), &Server::start_in(stopped.installation));
}

/// A server whose store is on a small disk; to be dropped before it. Says so where there can be none.
fn server_on_small_disk() -> Option<(SmallDisk, Server)> {
    let Some(disk) = SmallDisk::new() else {
        println!("*** NOT RUN: a full disk: only root can mount a small one");
        return None;
    };
    let installation = Installation::new();
    fs::remove_dir_all(installation.log()).expect("the store's directory can be removed");
    symlink(disk.path(), installation.log()).expect("a link");
    Some((disk, Server::start_in(installation)))
}

/// A file system in memory, unmounted when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// Absent where it cannot be mounted.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mounted = mount(&format!("size={DISK_BYTES}"), directory.path());
        mounted.then(|| SmallDisk(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// What somebody else has on the disk.
    fn other_file(&self) -> PathBuf {
        self.path().join("other")
    }

    /// Somebody else takes all space.
    fn fill_up(&self) {
        let mut file = File::create(self.other_file()).expect("a file");
        let error = loop {
            if let Err(error) = file.write_all(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }

    /// And gives it back.
    fn make_space(&self) {
        fs::remove_file(self.other_file()).expect("the file can be removed");
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
