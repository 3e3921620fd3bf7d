//! Admission of handshakes: a bounded number at a time, and none for long while others wait.
//!
//! Whoever connects and then says nothing, or speaks slowly, must not keep others out. So a handshake is admitted only when
//! the client's hello is there (a socket without one costs no place), and when all places are taken the oldest handshake
//! gives way once it has had [`GRACE`]: an honest one is through long before.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Time that every admitted handshake has, however many wait.
pub const GRACE: Duration = Duration::from_secs(5);

/// Time for the client's hello: it needs nothing but its own network for it.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// Between two looks at a hello that is not complete.
const HELLO_PAUSE: Duration = Duration::from_millis(20);

/// More of a hello is not looked at: it is then admitted as it is. Real ones have some hundred bytes.
const HELLO_BYTES: usize = 2048;

/// A TLS record's header: type, version, length.
const RECORD_HEADER: usize = 5;

/// The type of a record with a handshake message.
const HANDSHAKE_RECORD: u8 = 22;

/// Handshakes in progress.
#[derive(Debug)]
pub struct Admission {
    places: Arc<Semaphore>,
    admitted: Mutex<Admitted>,
}

#[derive(Debug, Default)]
struct Admitted {
    last: u64,
    handshakes: BTreeMap<u64, (Instant, Arc<Notify>)>,
}

/// A handshake's place. It is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    number: u64,
    give_way: Arc<Notify>,
    admission: Arc<Admission>,
    _permit: OwnedSemaphorePermit,
}

impl Admission {
    /// Room for `places` handshakes at a time.
    pub fn new(places: usize) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Arc::new(Admission { places, admitted: Mutex::default() })
    }

    /// Waits for a place. For each that waits the oldest handshake gives way, after its [`GRACE`].
    pub async fn admit(self: &Arc<Self>) -> Place {
        let mut permit = std::pin::pin!(Arc::clone(&self.places).acquire_owned());
        let mut evicted = false;
        loop {
            tokio::select! {
                biased;
                permit = &mut permit => match permit {
                    Ok(permit) => return self.enter(permit),
                    // Nobody closes the semaphore; were it closed, nobody could be admitted.
                    Err(_) => std::future::pending::<()>().await,
                },
                () = pass(self.oldest()), if !evicted => evicted = self.evict(),
            }
        }
    }

    fn enter(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Place {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.last += 1;
        let (number, give_way) = (admitted.last, Arc::new(Notify::new()));
        admitted.handshakes.insert(number, (Instant::now(), Arc::clone(&give_way)));
        Place { number, give_way, admission: Arc::clone(self), _permit: permit }
    }

    /// When the oldest handshake that was not told to give way has begun.
    fn oldest(&self) -> Option<Instant> {
        let admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.handshakes.first_key_value().map(|(_, (since, _))| *since)
    }

    /// Tells the oldest handshake to give way, if it has had its time. Whether one was told.
    fn evict(&self) -> bool {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(oldest) = admitted.handshakes.first_entry().filter(|oldest| oldest.get().0.elapsed() >= GRACE) else {
            return false;
        };
        oldest.remove().1.notify_one();
        true
    }
}

/// Resolves when a handshake that began at `since` has had its time; without one there is nothing to wait for but a place.
async fn pass(since: Option<Instant>) {
    match since {
        Some(since) => sleep_until(since + GRACE).await,
        None => sleep(GRACE).await,
    }
}

impl Place {
    /// Resolves when the handshake is to give way.
    pub async fn give_way(&self) {
        self.give_way.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut admitted = self.admission.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.handshakes.remove(&self.number);
    }
}

/// Waits until the client's hello has arrived, or what has arrived can be none. Reads nothing.
///
/// # Errors
/// The connection's, or [`io::ErrorKind::TimedOut`] after [`HELLO_TIMEOUT`].
pub async fn client_hello(socket: &TcpStream) -> io::Result<()> {
    timeout(HELLO_TIMEOUT, hello_arrived(socket)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn hello_arrived(socket: &TcpStream) -> io::Result<()> {
    let mut seen = 0;
    loop {
        let length = peek(socket, &mut seen).await?;
        if length {
            return Ok(());
        }
        sleep(HELLO_PAUSE).await;
    }
}

/// Whether a whole first record, or something else, is there. An end without anything more ends the waiting too.
async fn peek(socket: &TcpStream, seen: &mut usize) -> io::Result<bool> {
    let mut bytes = [0; HELLO_BYTES];
    let length = socket.peek(&mut bytes).await?;
    let bytes = bytes.get(..length).unwrap_or_default();
    let ended = length == 0;
    *seen = length;
    Ok(ended || is_complete(bytes))
}

/// Whether waiting for more would tell nothing new about these first bytes.
fn is_complete(bytes: &[u8]) -> bool {
    match bytes {
        [kind, ..] if *kind != HANDSHAKE_RECORD => true,
        [_, _, _, high, low, ..] => {
            let wanted = RECORD_HEADER + usize::from(u16::from_be_bytes([*high, *low]));
            bytes.len() >= wanted.min(HELLO_BYTES)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_handshake_gives_way_after_its_grace_and_not_before() {
        let admission = Admission::new(2);
        let (first, second) = (admission.admit().await, admission.admit().await);
        let waiting = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.admit().await }
        });
        tokio::time::sleep(GRACE - Duration::from_millis(1)).await;
        assert!(first.give_way().now_or_never().is_none());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(first.give_way().now_or_never().is_some());
        assert!(second.give_way().now_or_never().is_none());
        drop(first);
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_gives_way_while_nobody_waits() {
        let admission = Admission::new(1);
        let place = admission.admit().await;
        tokio::time::sleep(GRACE * 10).await;
        assert!(place.give_way().now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_waiting_are_admitted_one_after_the_other() {
        let admission = Admission::new(4);
        let waiting: Vec<_> = (0..100)
            .map(|_| {
                let admission = Arc::clone(&admission);
                tokio::spawn(async move {
                    let place = admission.admit().await;
                    place.give_way().await;
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(admission.places.available_permits(), 0);
        assert_eq!(admission.admitted.lock().unwrap().handshakes.len(), 4);
        // Nobody is through by itself, so each makes way for another, but the last four.
        let through = || waiting.iter().filter(|task| task.is_finished()).count();
        tokio::time::sleep(GRACE * 200).await;
        assert_eq!(through(), 96);
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (client.unwrap(), accepted.unwrap().0)
    }

    #[tokio::test]
    async fn a_hello_is_awaited_to_its_end_and_not_read() {
        let (mut client, server) = pair().await;
        let mut record = vec![HANDSHAKE_RECORD, 3, 1, 0, 100];
        record.extend([7; 100]);
        client.write_all(&record[..50]).await.unwrap();
        server.readable().await.unwrap();
        assert!(!peek(&server, &mut 0).await.unwrap());
        client.write_all(&record[50..]).await.unwrap();
        client_hello(&server).await.unwrap();
        let mut bytes = [0; 200];
        assert_eq!(server.peek(&mut bytes).await.unwrap(), record.len());
    }

    #[test]
    fn what_is_no_hello_is_not_awaited() {
        assert!(is_complete(b"GET / HTTP/1.1"));
        assert!(!is_complete(&[HANDSHAKE_RECORD, 3]));
        assert!(!is_complete(&[HANDSHAKE_RECORD, 3, 1, 0xff, 0xff]));
        let mut long = vec![HANDSHAKE_RECORD, 3, 1, 0xff, 0xff];
        long.resize(HELLO_BYTES, 0);
        assert!(is_complete(&long));
    }
}
