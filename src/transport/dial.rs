//! Outgoing TCP connections.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpSocket, TcpStream, lookup_host};

use super::listener::set_options;
use crate::protocol::address::{Host, ServerAddress};

/// Connects to a relay: its hosts one after the other, and all addresses of each, until one answers. Has no time limit
/// of its own.
///
/// # Errors
/// That of the last attempt. `InvalidInput` for a port that is no number; `Unsupported` for onion hosts, which need a
/// proxy.
pub(super) async fn dial(address: &ServerAddress, local: Option<IpAddr>) -> io::Result<TcpStream> {
    let port = address.port_number().ok_or(io::ErrorKind::InvalidInput)?;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for host in &address.hosts {
        match dial_host(host, port, local).await {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn dial_host(host: &Host, port: u16, local: Option<IpAddr>) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = match host {
        Host::Ipv4(ip) => vec![SocketAddr::from((*ip, port))],
        Host::Ipv6(ip) => vec![SocketAddr::from((*ip, port))],
        Host::Domain(name) => lookup_host((name.as_str(), port)).await?.collect(),
        Host::Onion(_) => return Err(io::ErrorKind::Unsupported.into()),
    };
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match dial_address(address, local).await {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn dial_address(address: SocketAddr, local: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(local) = local {
        socket.bind(SocketAddr::new(local, 0))?;
    }
    let stream = socket.connect(address).await?;
    set_options(&stream);
    Ok(stream)
}
