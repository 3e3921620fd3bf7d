//! Connections to a PostgreSQL with TLS, whose `pg_hba.conf` lets some roles in with TLS or with a password only.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::LazyLock;

use super::super::super::cluster::Cluster;
use super::*;
use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509NameBuilder};

/// The role `smp` needs no password; `protected` has one and is not let in without TLS.
const HBA: &str = "
    local all smp trust
    host all smp 127.0.0.1/32 trust
    hostssl all protected 127.0.0.1/32 scram-sha-256
    hostnossl all protected 127.0.0.1/32 reject
";

/// What the tests read lies in its data directory too, which is removed with it.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let (root, root_key) = certificate("root", None);
    let (leaf, key) = certificate("localhost", Some((&root, &root_key)));
    let (other, _) = certificate("another root", None);
    let text = |pem: Result<Vec<u8>, openssl::error::ErrorStack>| String::from_utf8(pem.expect("PEM")).expect("text");
    let files = [
        ("server.crt", text(leaf.to_pem())),
        ("server.key", text(key.private_key_to_pem_pkcs8())),
        ("pg_hba.conf", HBA.to_owned()),
        ("root.crt", text(root.to_pem())),
        ("other.crt", text(other.to_pem())),
        ("pgpass", "# comment\n*:*:*:other:x\nlocalhost:*:smp:protected:a word\n".to_owned()),
    ];
    let cluster =
        Cluster::start_on_tcp(&["ssl=on"], &files.each_ref().map(|(name, content)| (*name, content.as_str())));
    cluster.sql("CREATE ROLE protected LOGIN PASSWORD 'a word'");
    cluster
});

/// A certificate of this name, signed by an issuer or by itself.
fn certificate(name: &str, issuer: Option<(&X509, &PKey<Private>)>) -> (X509, PKey<Private>) {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).expect("a curve");
    let key = PKey::from_ec_key(EcKey::generate(&group).expect("a key")).expect("a key");
    let mut subject = X509NameBuilder::new().expect("a name");
    subject.append_entry_by_nid(Nid::COMMONNAME, name).expect("a name");
    let subject = subject.build();
    let mut builder = X509::builder().expect("a certificate");
    builder.set_version(2).expect("version 3");
    let serial = BigNum::from_u32(name.len() as u32).and_then(|number| number.to_asn1_integer()).expect("a number");
    builder.set_serial_number(&serial).expect("a number");
    builder.set_subject_name(&subject).expect("a name");
    builder.set_issuer_name(issuer.map_or(&subject, |(issuer, _)| issuer.subject_name())).expect("a name");
    builder.set_pubkey(&key).expect("a key");
    builder.set_not_before(&Asn1Time::days_from_now(0).expect("a time")).expect("a time");
    builder.set_not_after(&Asn1Time::days_from_now(2).expect("a time")).expect("a time");
    let extension = match issuer {
        None => BasicConstraints::new().ca().build().expect("an extension"),
        Some((issuer, _)) => {
            SubjectAlternativeName::new().dns(name).build(&builder.x509v3_context(Some(issuer), None)).expect("names")
        }
    };
    builder.append_extension(extension).expect("an extension");
    builder.sign(issuer.map_or(&key, |(_, key)| key), MessageDigest::sha256()).expect("a signature");
    (builder.build(), key)
}

fn file(name: &str) -> PathBuf {
    CLUSTER.data().join(name)
}

/// The database, by name over TCP, with these parameters beside.
async fn connect(user: &str, parameters: &str) -> Result<Client, ConnectError> {
    connect_in(user, parameters, &[]).await
}

async fn connect_in(user: &str, parameters: &str, environment: &[(&str, &str)]) -> Result<Client, ConnectError> {
    let port = CLUSTER.port();
    let connection = format!("host=localhost hostaddr=127.0.0.1 port={port} dbname=smp user={user} {parameters}");
    connector(&connection, environment).expect("a good string").connect().await
}

async fn encrypted(client: &Client) -> bool {
    let row = client.query_one("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).await;
    row.expect("a row").get(0)
}

#[tokio::test]
async fn tls_is_used_as_sslmode_says() {
    for (mode, expected) in [("disable", false), ("allow", false), ("prefer", true), ("require", true)] {
        let client = connect("smp", &format!("sslmode={mode}")).await.expect(mode);
        assert_eq!(encrypted(&client).await, expected, "{mode}");
    }
    assert!(encrypted(&connect("smp", "").await.expect("a connection")).await, "prefer is the default");
    assert!(encrypted(&connect_in("smp", "", &[("PGSSLMODE", "require")]).await.expect("a connection")).await);
}

#[tokio::test]
async fn certificates_are_verified_as_sslmode_says() {
    let (root, other) = (file("root.crt"), file("other.crt"));
    let with = |mode: &str, root: &PathBuf| format!("sslmode={mode} sslrootcert={}", root.display());
    for mode in ["require", "verify-ca", "verify-full"] {
        assert!(encrypted(&connect("smp", &with(mode, &root)).await.expect(mode)).await, "{mode}");
        let text = connect("smp", &with(mode, &other)).await.expect_err("another root").to_string();
        assert!(text.contains("sslrootcert") && text.contains("certificate"), "{mode}: {text}");
    }
    let by_address = |mode| {
        let port = CLUSTER.port();
        let connection = format!("host=127.0.0.1 port={port} dbname=smp user=smp {}", with(mode, &root));
        async move { connector(&connection, &[]).expect("a good string").connect().await }
    };
    assert!(by_address("verify-ca").await.is_ok());
    let text = by_address("verify-full").await.expect_err("another name").to_string();
    assert!(text.contains("mismatch"), "{text}");
    assert!(connect_in("smp", "sslmode=verify-full", &[("PGSSLROOTCERT", &root.to_string_lossy())]).await.is_ok());
    assert!(connect("smp", "sslrootcert=system").await.is_err(), "the system does not trust our root");
}

#[test]
fn roots_that_cannot_be_had_are_refused_before_connecting() {
    assert!(refusal("user=a host=h sslmode=verify-full").contains("\"sslrootcert\""));
    assert!(refusal("user=a host=h sslmode=verify-ca sslrootcert=/none/x").starts_with("/none/x: "));
    let key = file("pgpass");
    assert!(refusal(&format!("user=a host=h sslmode=verify-ca sslrootcert={}", key.display())).contains("PEM"));
}

#[tokio::test]
async fn passwords_come_from_the_string_the_environment_or_the_file() {
    assert!(connect("protected", "password='a word'").await.is_ok());
    assert!(connect_in("protected", "", &[("PGPASSWORD", "a word")]).await.is_ok());
    let passfile = file("pgpass");
    assert!(connect("protected", &format!("passfile={}", passfile.display())).await.is_ok());
    assert!(connect_in("protected", "", &[("PGPASSFILE", &passfile.to_string_lossy())]).await.is_ok());
    for (parameters, environment) in [("", None), ("password=another", None), ("", Some(("PGPASSWORD", "another")))] {
        let refused = connect_in("protected", parameters, environment.as_slice()).await;
        let text = refused.expect_err("a refusal").to_string();
        assert!(text.contains("db_connection") && text.contains("pg_hba.conf"), "{text}");
        assert!(!text.contains("another"), "{text}");
    }
    let open = file("open");
    std::fs::copy(&passfile, &open).expect("a copy");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).expect("our file");
    assert!(connect("protected", &format!("passfile={}", open.display())).await.is_err(), "others can read it");
}

#[tokio::test]
async fn what_is_let_in_with_tls_only_is_tried_with_it() {
    let password = "password='a word'";
    assert!(encrypted(&connect("protected", &format!("{password} sslmode=allow")).await.expect("TLS")).await);
    let text = connect("protected", &format!("{password} sslmode=disable")).await.expect_err("a refusal").to_string();
    assert!(text.contains("pg_hba.conf"), "{text}");
}

#[tokio::test]
async fn a_connection_is_in_its_schema_and_has_a_name_and_no_notices() {
    let show = "SELECT current_setting('search_path'), current_setting('client_min_messages'), \
        current_setting('application_name')";
    let settings = async |client: &Client| -> Vec<String> {
        let row = client.query_one(show, &[]).await.expect("a row");
        (0..3).map(|column| row.get(column)).collect()
    };
    let client = connect("smp", "").await.expect("a connection");
    assert_eq!(settings(&client).await, ["smp_server", "warning", "smp-server"]);
    let client = connect("smp", "application_name=mine options='-c search_path=public'").await.expect("a connection");
    assert_eq!(settings(&client).await, ["smp_server", "warning", "mine"]);

    let connector = connector(&CLUSTER.connection(), &[]).expect("a good string");
    let pool = deadpool_postgres::Pool::builder(connector.manager()).max_size(2).build().expect("a pool");
    for _ in 0..3 {
        let (one, two) = (pool.get().await.expect("a connection"), pool.get().await.expect("a connection"));
        assert_eq!(settings(&one).await, ["smp_server", "warning", "smp-server"]);
        assert_eq!(settings(&two).await, ["smp_server", "warning", "smp-server"]);
    }
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let cluster = &*CLUSTER;
    let at = |connection: String| async move {
        let connector = connector(&connection, &[]).expect("a good string");
        connector.connect().await.expect_err("no connection").to_string()
    };
    let text = at(cluster.connection().replace("/smp?", "/absent?")).await;
    assert!(text.contains("createdb --owner=smp absent") && text.contains("CREATE EXTENSION"), "{text}");
    let text = at(cluster.connection().replace("smp@", "nobody@")).await;
    assert!(text.contains("createuser nobody"), "{text}");
    let directory = file("");
    let text = at(format!("user=smp host={}", directory.display())).await;
    assert!(text.contains("cannot be reached") && text.contains(".s.PGSQL.5432"), "{text}");
    assert!(text.contains("No such file"), "{text}");
}

#[tokio::test]
async fn the_next_host_is_tried_if_one_cannot_be_reached_and_not_if_it_refuses() {
    let directory = CLUSTER.socket().parent().expect("a directory").display().to_string();
    let (port, none) = (CLUSTER.port(), file("").display().to_string());
    let both = connector(&format!("user=smp host={none},{directory} port={port}"), &[]).expect("a good string");
    assert!(both.connect().await.is_ok());
    let refusing = format!("user=smp dbname=absent host={directory},{none} port={port}");
    let error = connector(&refusing, &[]).expect("a good string").connect().await.expect_err("no database");
    assert!(matches!(error, ConnectError::NoDatabase { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a bound socket").port();
    let silent =
        connector(&format!("user=a host=127.0.0.1 port={port} connect_timeout=1"), &[]).expect("a good string");
    let text = silent.connect().await.expect_err("no answer").to_string();
    assert!(text.contains("did not answer within 1 s"), "{text}");
}
