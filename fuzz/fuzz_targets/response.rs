//! Every response, event and error, in every version. The corpus has each of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use smp_server::protocol::response::Response;
use smp_server_fuzz::{assert_canonical, versioned, written};

fuzz_target!(|data: &[u8]| {
    let Some((version, input)) = versioned(data) else { return };
    assert_canonical(
        &input,
        |source| Response::decode(version, source),
        |response| written(|out| response.encode(version, out)),
    );
});
