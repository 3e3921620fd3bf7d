//! A proxy before the database's socket: it makes the network slow enough that round trips can be counted, and can hang.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tempfile::TempDir;

/// How long a burst is on its way to the database, and how long parts that follow each other belong to one burst.
const LATENCY: Duration = Duration::from_millis(25);

/// Listens until it is dropped.
pub struct Proxy {
    directory: TempDir,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    round_trips: AtomicU64,
    closed: AtomicBool,
    hangs: Mutex<bool>,
    goes_on: Condvar,
    streams: Mutex<Vec<UnixStream>>,
}

impl Proxy {
    /// Before the database that listens at `socket`.
    pub fn new(socket: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let shared = Arc::new(Shared::default());
        let listener = UnixListener::bind(path(&directory)).unwrap();
        let (socket, own) = (socket.to_owned(), shared.clone());
        std::thread::spawn(move || accept(&listener, &socket, &own));
        Proxy { directory, shared }
    }

    /// What to connect to.
    pub fn connection(&self, user: &str) -> String {
        format!("postgresql://{user}@/{user}?host={}&port=5432", self.directory.path().display())
    }

    /// How often a client that waited for nothing has sent something and begun to wait.
    pub fn round_trips(&self) -> u64 {
        self.shared.round_trips.load(Ordering::SeqCst)
    }

    /// From now on, nothing comes through; connections stay open.
    pub fn hang(&self) {
        *self.shared.hangs.lock().unwrap() = true;
    }

    /// Everything comes through again.
    pub fn go_on(&self) {
        *self.shared.hangs.lock().unwrap() = false;
        self.shared.goes_on.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.go_on();
        // Wakes the thread that accepts.
        let _ = UnixStream::connect(path(&self.directory));
        self.shared.streams.lock().unwrap().iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

fn path(directory: &TempDir) -> PathBuf {
    directory.path().join(".s.PGSQL.5432")
}

fn accept(listener: &UnixListener, socket: &Path, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.closed.load(Ordering::SeqCst) {
            return;
        }
        let client = client.unwrap();
        // A database that is down refuses.
        let Ok(server) = UnixStream::connect(socket) else { continue };
        shared.streams.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
        let outstanding = Arc::new(AtomicU64::new(0));
        let copy = |from: &UnixStream, to: &UnixStream, forward: Forward| {
            let (from, to, shared) = (from.try_clone().unwrap(), to.try_clone().unwrap(), shared.clone());
            std::thread::spawn(move || forward_all(from, to, forward, &shared));
        };
        copy(&client, &server, Forward::Requests(Frames::of_client(), outstanding.clone()));
        copy(&server, &client, Forward::Answers(Frames::default(), outstanding));
    }
}

/// A direction, with what is asked and not answered yet.
enum Forward {
    Requests(Frames, Arc<AtomicU64>),
    Answers(Frames, Arc<AtomicU64>),
}

fn forward_all(mut from: UnixStream, mut to: UnixStream, mut forward: Forward, shared: &Shared) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(length @ 1..) = read_burst(&mut from, &mut buffer, matches!(forward, Forward::Requests(..))) {
        let hangs = shared.hangs.lock().unwrap();
        drop(shared.goes_on.wait_while(hangs, |hangs| *hangs).unwrap());
        match &mut forward {
            Forward::Requests(frames, outstanding) => {
                let asked = frames.count(&buffer[..length], b"SQ");
                if asked > 0 && outstanding.fetch_add(asked, Ordering::SeqCst) == 0 {
                    shared.round_trips.fetch_add(1, Ordering::SeqCst);
                }
            }
            Forward::Answers(frames, outstanding) => {
                let ready = frames.count(&buffer[..length], b"Z");
                // The first one is the answer to the startup, which is not counted as asked.
                let _ = outstanding.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some(n.saturating_sub(ready)));
            }
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Reads what is there; of requests, all that follows within the latency.
fn read_burst(from: &mut UnixStream, buffer: &mut [u8], whole: bool) -> std::io::Result<usize> {
    from.set_read_timeout(None)?;
    let mut length = from.read(buffer)?;
    from.set_read_timeout(Some(LATENCY))?;
    while whole && length > 0 && length < buffer.len() {
        match from.read(&mut buffer[length..]) {
            Ok(more @ 1..) => length += more,
            _ => break,
        }
    }
    Ok(length)
}

/// Finds the messages of PostgreSQL's protocol in a stream: a type byte, then the length of the rest with itself.
#[derive(Default)]
struct Frames {
    /// The client's first message has no type.
    untyped: bool,
    head: Vec<u8>,
    left: usize,
}

impl Frames {
    fn of_client() -> Self {
        Frames { untyped: true, ..Frames::default() }
    }

    /// How many messages of these types begin in `bytes`.
    fn count(&mut self, bytes: &[u8], types: &[u8]) -> u64 {
        let mut count = 0;
        for byte in bytes {
            if self.left > 0 {
                self.left -= 1;
                continue;
            }
            self.head.push(*byte);
            let skip = usize::from(!self.untyped);
            if self.head.len() == skip + 4 {
                let length = u32::from_be_bytes(self.head[skip..].try_into().unwrap()) as usize;
                count += u64::from(!self.untyped && types.contains(&self.head[0]));
                self.left = length - 4;
                self.untyped = false;
                self.head.clear();
            }
        }
        count
    }
}
