//! Starting, stopping and crashing.

use std::net::TcpStream;

use crate::support::Server;

#[test]
fn a_server_asked_to_stop_ends_with_success() {
    let stopped = Server::start().stop();
    assert!(stopped.status.success(), "{:?}: {}", stopped.status, stopped.output.join("\n"));
}

#[test]
fn a_stopped_server_no_longer_accepts() {
    let server = Server::start();
    let address = server.address();
    server.stop();
    assert!(TcpStream::connect(address).is_err(), "{address} still accepts");
}

#[test]
fn a_killed_server_starts_again_with_the_same_identity() {
    let server = Server::start();
    let fingerprint = server.installation().fingerprint();
    let server = server.crash_and_restart();
    assert!(server.smp_address().starts_with(&format!("smp://{fingerprint}@")), "{}", server.smp_address());
    TcpStream::connect(server.address()).expect("it accepts");
}
