//! Listening sockets: several ports, one stream of accepted connections.
//!
//! Nothing that a peer or the system does stops a [`Listener`] or makes it spin: an error of `accept` is waited out, for
//! longer and longer up to a second, and logged once a minute. A connection is accepted only when there is a permit for
//! it; until then the kernel keeps it waiting.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// Connections that the kernel keeps waiting for us, per port. The kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Bytes of a connection that the kernel takes before it has sent those before: two blocks. Without it the kernel keeps up
/// to 4 MiB for a peer that does not read.
const NOT_SENT: u32 = 32 * 1024;

/// Quiet time after which the kernel asks whether a peer is still there. Mobile networks forget idle connections after
/// 5 to 30 minutes, so this finds dead ones before they pile up, at a cost of 40 bytes in two minutes.
const KEEPALIVE_TIME: Duration = Duration::from_secs(120);
/// Time between further questions.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// Unanswered questions before the connection is gone.
const KEEPALIVE_RETRIES: u32 = 4;

/// The first wait after an error of `accept`.
const SHORTEST_DELAY: Duration = Duration::from_millis(5);
/// The longest wait after an error of `accept`.
const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// How often errors of `accept` are logged.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// How many connections there may be.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Connections, handshakes included.
    pub connections: Arc<Semaphore>,
}

impl ConnectionLimits {
    /// At most this many.
    pub fn new(connections: usize) -> Self {
        ConnectionLimits { connections: Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS))) }
    }
}

/// A connection that was accepted, before its handshake.
#[derive(Debug)]
pub struct AcceptedSocket {
    /// The socket, with `TCP_NODELAY` and keep-alive.
    pub socket: TcpStream,
    /// The peer's address; IPv4 is IPv4 also on a socket for both.
    pub peer: SocketAddr,
    /// Counts as a connection; to be kept until it ends.
    pub connection: OwnedSemaphorePermit,
}

/// Listening sockets.
#[derive(Debug)]
pub struct Listener {
    listeners: Vec<TcpListener>,
    limits: ConnectionLimits,
    /// Which socket is asked first, so that a busy port does not starve the others.
    first: usize,
    failures: Failures,
}

impl Listener {
    /// Listens on all of `addresses`, or on none and says which one failed. `[::]` means IPv4 too, and only IPv4 where
    /// the system has no IPv6. Port 0 lets the system choose, see [`Listener::addresses`]. Needs a tokio runtime.
    pub fn bind(addresses: &[SocketAddr], limits: ConnectionLimits) -> io::Result<Self> {
        let listeners = addresses.iter().map(|address| bind(*address)).collect::<io::Result<Vec<_>>>()?;
        Ok(Listener { listeners, limits, first: 0, failures: Failures::default() })
    }

    /// The addresses that are listened on, in the order they were asked for.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// The next connection, as soon as the limits allow one. Cancelling loses none. Never resolves once a semaphore of
    /// the limits is closed.
    pub async fn accept(&mut self) -> AcceptedSocket {
        let connection = permit(&self.limits.connections).await;
        let (socket, peer) = self.accept_socket().await;
        set_options(&socket);
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        AcceptedSocket { socket, peer, connection }
    }

    async fn accept_socket(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            match std::future::poll_fn(|cx| self.poll_accept(cx)).await {
                Ok(accepted) => {
                    self.failures.end();
                    return accepted;
                }
                Err(error) if is_of_one_connection(&error) => {
                    tracing::debug!(%error, "a connection ended before it was accepted");
                }
                Err(error) => sleep(self.failures.add(&error, Instant::now())).await,
            }
        }
    }

    /// Asks each socket once, beginning with another one each time.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let count = self.listeners.len();
        for at in (self.first..count).chain(0..self.first) {
            if let Some(Poll::Ready(accepted)) = self.listeners.get(at).map(|listener| listener.poll_accept(cx)) {
                self.first = (at + 1) % count;
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    }
}

/// The address for a port on all interfaces.
pub fn any_address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))
}

async fn permit(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    match semaphore.clone().acquire_owned().await {
        Ok(permit) => permit,
        Err(_closed) => std::future::pending().await,
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let bound = match listen(address) {
        Err(_) if address.ip() == Ipv6Addr::UNSPECIFIED && !has_ipv6() => {
            listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
        }
        bound => bound,
    };
    let hint = |error: &io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => " (ports below 1024 need root or CAP_NET_BIND_SERVICE)",
        io::ErrorKind::AddrInUse => " (another server listens there)",
        _ => "",
    };
    bound.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}{}", hint(&error))))
}

fn has_ipv6() -> bool {
    listen(SocketAddr::from((Ipv6Addr::LOCALHOST, 0))).is_ok()
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if let SocketAddr::V6(v6) = address {
        socket.set_only_v6(!v6.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    // Its connections have it from the listener.
    socket.set_tcp_notsent_lowat(NOT_SENT)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Sets what every SMP connection wants: no waiting for more bytes (blocks are sent whole), and word of dead peers.
/// A socket that refuses is as good without.
pub(super) fn set_options(socket: &TcpStream) {
    let keepalive =
        TcpKeepalive::new().with_time(KEEPALIVE_TIME).with_interval(KEEPALIVE_INTERVAL).with_retries(KEEPALIVE_RETRIES);
    let set = socket.set_nodelay(true).and_then(|()| SockRef::from(socket).set_tcp_keepalive(&keepalive));
    if let Err(error) = set {
        tracing::debug!(%error, "cannot set socket options");
    }
}

/// Whether an error of `accept` is about the one connection that it took from the queue: the next may be tried at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Errors of `accept` in a row.
#[derive(Debug, Default)]
struct Failures {
    delay: Duration,
    unlogged: u64,
    logged: Option<Instant>,
}

impl Failures {
    /// Takes note of an error, logs it if that is due, and answers how long to wait.
    fn add(&mut self, error: &io::Error, now: Instant) -> Duration {
        self.unlogged += 1;
        if self.logged.is_none_or(|logged| now - logged >= LOG_INTERVAL) {
            tracing::error!(%error, times = self.unlogged, "cannot accept connections, trying again");
            self.logged = Some(now);
            self.unlogged = 0;
        }
        self.delay = (self.delay * 2).clamp(SHORTEST_DELAY, LONGEST_DELAY);
        self.delay
    }

    fn end(&mut self) {
        self.delay = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn loopback() -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
    }

    fn listener(addresses: &[SocketAddr], connections: usize) -> Listener {
        Listener::bind(addresses, ConnectionLimits::new(connections)).unwrap()
    }

    #[tokio::test]
    async fn accepts_on_every_port_and_reports_the_ports_that_the_system_chose() {
        let mut listener = listener(&[loopback(), loopback()], 10);
        for address in listener.addresses().unwrap() {
            assert_ne!(address.port(), 0);
            let client = TcpStream::connect(address).await.unwrap();
            let accepted = listener.accept().await;
            assert_eq!(accepted.peer, client.local_addr().unwrap());
            assert!(accepted.socket.nodelay().unwrap());
            let socket = SockRef::from(&accepted.socket);
            assert!(socket.keepalive().unwrap());
            assert_eq!(socket.tcp_notsent_lowat().unwrap(), NOT_SENT);
        }
    }

    #[tokio::test]
    async fn one_socket_serves_ipv4_and_ipv6() {
        let mut listener = listener(&[any_address(0)], 10);
        let port = listener.addresses().unwrap()[0].port();
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        assert_eq!(listener.accept().await.peer, client.local_addr().unwrap());
        if has_ipv6() {
            let client = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.unwrap();
            assert_eq!(listener.accept().await.peer, client.local_addr().unwrap());
        }
    }

    #[tokio::test]
    async fn accepts_only_what_the_limits_allow() {
        let mut listener = listener(&[loopback()], 2);
        let address = listener.addresses().unwrap()[0];
        let _clients = [
            TcpStream::connect(address).await.unwrap(),
            TcpStream::connect(address).await.unwrap(),
            TcpStream::connect(address).await.unwrap(),
        ];
        let first = listener.accept().await;
        let _second = listener.accept().await;
        assert!(listener.accept().now_or_never().is_none(), "there are two connections");
        drop(first.connection);
        listener.accept().await;
    }

    #[tokio::test]
    async fn a_port_in_use_is_named() {
        let first = listener(&[loopback()], 1);
        let address = first.addresses().unwrap()[0];
        let error = Listener::bind(&[address], ConnectionLimits::new(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&address.to_string()));
    }

    #[test]
    fn waits_longer_after_each_error_up_to_a_second_and_starts_anew_after_success() {
        let mut failures = Failures::default();
        let (error, now) = (io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error()), Instant::now());
        let delays: Vec<u64> = (0..10).map(|_| failures.add(&error, now).as_millis() as u64).collect();
        assert_eq!(delays, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        failures.end();
        assert_eq!(failures.add(&error, now), SHORTEST_DELAY);
    }

    #[test]
    fn logs_a_burst_of_errors_once_a_minute() {
        let mut failures = Failures::default();
        let (error, start) = (io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error()), Instant::now());
        failures.add(&error, start);
        failures.add(&error, start + Duration::from_secs(1));
        assert_eq!((failures.unlogged, failures.logged), (1, Some(start)));
        failures.add(&error, start + LOG_INTERVAL);
        assert_eq!((failures.unlogged, failures.logged), (0, Some(start + LOG_INTERVAL)));
    }

    #[test]
    fn errors_of_one_connection_are_told_from_those_of_the_system() {
        use rustix::io::Errno;
        let of_one = |errno: Errno| is_of_one_connection(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert!(of_one(Errno::CONNABORTED));
        assert!([Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].into_iter().all(|errno| !of_one(errno)));
    }
}
