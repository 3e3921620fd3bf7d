//! Starting, stopping and crashing.

use std::net::TcpStream;

use crate::support::{Store, for_each_lasting_store};

for_each_lasting_store!(
    a_server_asked_to_stop_ends_with_success,
    a_stopped_server_no_longer_accepts,
    a_killed_server_starts_again_with_the_same_identity,
);

fn a_server_asked_to_stop_ends_with_success(store: Store) {
    let stopped = store.server().stop();
    assert!(stopped.status.success(), "{:?}: {}", stopped.status, stopped.output.join("\n"));
}

fn a_stopped_server_no_longer_accepts(store: Store) {
    let server = store.server();
    let address = server.address();
    server.stop();
    assert!(TcpStream::connect(address).is_err(), "{address} still accepts");
}

fn a_killed_server_starts_again_with_the_same_identity(store: Store) {
    let server = store.server();
    let fingerprint = server.installation().fingerprint();
    let server = server.crash_and_restart();
    assert!(server.smp_address().starts_with(&format!("smp://{fingerprint}@")), "{}", server.smp_address());
    TcpStream::connect(server.address()).expect("it accepts");
}
