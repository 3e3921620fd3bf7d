//! The scenarios of an independent client (`tests/smp_client`) against the real server, in every version.
//!
//! Needs Python with PyNaCl and cryptography: `SMP_TEST_PYTHON` names it, as `make test` does; then it has to work.
//! Otherwise `python3` is tried, and if it will not do, the tests say on standard error that they did not run.

use std::env;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Server, Store};

/// The scenarios for what the server does by now, by module. The client skips those of later versions.
const SCENARIOS: [&str; 7] = [
    // hello
    "ping,hello_binding,hello_wrong_key_hash,hello_wrong_version,hello_malformed,hello_trailing_bytes,\
     hello_without_key,hello_proxy,hello_no_alpn,hello_wrong_alpn,blocks_in_pieces",
    // queue
    "round_trip_ed25519,round_trip_ed448,round_trip_x25519,empty_body,sender_key,new_only_create,password,\
     new_wrong_key,send_authorization,recipient_authorization,send_too_large,quota,redelivery,\
     redelivery_after_close,get,get_after_sub,ack_errors,suspend,delete,queue_info,own_queue,\
     alternate_subscribers,session_binding",
    // errors
    "batch_ping_255,batch_subscribe,batch_delete,batch_mixed,batch_send,correlation_ids,bad_blocks,\
     bad_padding,bad_authorization_size,bad_credentials,bad_commands,resolve_off",
    // links
    "link_messaging,link_messaging_set,link_contact,link_deleted_queue,link_sender_id,recipient_keys",
    // load
    "send_right_after_new,send_right_after_sub,send_during_sub,many_messages",
    // notifications
    "notifications,notifications_in_new,notification_before_nsub,notifier_replaced,notifier_deleted_queue",
    // services
    "service_messages,service_association,service_notifications,service_signatures,service_roles,service_refused",
];

/// Scenarios at a time: some of them mostly wait.
const JOBS: &str = "8";

/// The password for new queues, so that the scenario about it runs.
const PASSWORD: &str = "independent";

/// A Python that can run the client, or why there is none.
fn python() -> Result<String, String> {
    let python = env::var("SMP_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let check = Command::new(&python).args(["-c", "import ssl, nacl.bindings, cryptography"]).output();
    match check {
        Ok(output) if output.status.success() => Ok(python),
        Ok(output) => Err(format!("{python}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{python}: {error}")),
    }
}

/// Says that a test did not run, where the test runner does not swallow it.
fn say_not_run(version: u16, reason: &str) {
    let text = format!("\n*** NOT RUN: the independent client in version {version} (use `make test`): {reason}\n\n");
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

fn run_in_version(store: Store, version: u16) {
    let python = match python() {
        Ok(python) => python,
        Err(reason) if env::var_os("SMP_TEST_PYTHON").is_none() => return say_not_run(version, &reason),
        Err(reason) => panic!("SMP_TEST_PYTHON does not work: {reason}"),
    };
    let installation = store.installation();
    installation.set("AUTH", "create_password", PASSWORD);
    let server = Server::start_in(installation);
    let output = Command::new(python)
        .args(["-B", "tests/smp_client/smp_client.py", &server.smp_address(), "--password", PASSWORD, "--empty-body"])
        .args(["--version", &version.to_string(), "--jobs", JOBS, "--only", &SCENARIOS.join(",")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains(&format!("version {version}: ")),
        "{said}\n{}\nthe server:\n{}",
        String::from_utf8_lossy(&output.stderr),
        server.output().join("\n")
    );
}

/// A test for each version and store, so that they run side by side and fail by name.
macro_rules! versions {
    ($($name:ident: $version:literal),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                super::run_in_version(super::Store::Sqlite, $version);
            })+
        }
        mod postgres {
            $(#[test]
            fn $name() {
                super::run_in_version(super::Store::Postgres, $version);
            })+
        }
    };
}

versions! {
    version_6: 6, version_7: 7, version_8: 8, version_9: 9, version_10: 10, version_11: 11, version_12: 12,
    version_13: 13, version_14: 14, version_15: 15, version_16: 16, version_17: 17, version_18: 18, version_19: 19,
    version_20: 20,
}
