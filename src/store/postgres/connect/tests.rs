//! What connection strings mean.

mod database;

use super::*;

fn options(connection: &str) -> DatabaseOptions {
    DatabaseOptions { connection: connection.into(), schema: "smp_server".parse().expect("a name") }
}

fn connector(connection: &str, environment: &[(&str, &str)]) -> Result<Connector, StringError> {
    let value = |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Connector::with_environment(&options(connection), &value)
}

fn place(connection: &str) -> String {
    connector(connection, &[]).expect("a good string").to_string()
}

fn refusal(connection: &str) -> String {
    connector(connection, &[]).expect_err("a bad string").to_string()
}

#[test]
fn a_string_without_a_host_means_the_usual_sockets() {
    let usual = "database \"smp_server_store\" (user \"smp\") at \
        /var/run/postgresql/.s.PGSQL.5432, /tmp/.s.PGSQL.5432";
    assert_eq!(place("postgresql://smp@/smp_server_store"), usual);
    assert_eq!(place("postgres://smp@/smp_server_store"), usual);
    assert_eq!(place("user=smp dbname = smp_server_store"), usual);
    assert_eq!(place("postgresql://?user=smp&dbname=smp_server_store"), usual);
}

#[test]
fn hosts_ports_and_databases_are_found_in_both_forms() {
    let one = "database \"a b\" (user \"me@here\") at db.example:6000";
    assert_eq!(place("postgresql://me%40here:p%3A@db.example:6000/a%20b"), one);
    assert_eq!(place(r"user=me@here password='p:' host=db.example port=6000 dbname='a b'"), one);
    assert_eq!(place(r"user=me@here host=db.example port=6000 dbname=a\ b"), one);
    assert!(place("postgresql://me@one:1,[2001:db8::1]:2,three").ends_with("at one:1, 2001:db8::1:2, three:5432"));
    assert!(place("user=me host=one,/run/x port=1,2").ends_with("at one:1, /run/x/.s.PGSQL.2"));
    assert!(place("user=me host=one,two port=7").ends_with("at one:7, two:7"));
    assert!(place("postgresql://me@%2Frun%2Fx:7/d").ends_with("at /run/x/.s.PGSQL.7"));
    assert!(place("postgresql://me@/d?host=/run/x&port=7").ends_with("at /run/x/.s.PGSQL.7"));
    assert!(place("user=me hostaddr=127.0.0.1").ends_with("at 127.0.0.1:5432"));
    assert!(place("postgresql://me@h").starts_with("database \"me\""), "the database is called as the user");
    assert!(place(r"user='it\'s' host=h").contains("(user \"it's\")"));
}

#[test]
fn the_environment_gives_what_the_string_lacks() {
    let environment = [("PGHOST", "db"), ("PGPORT", "7"), ("PGUSER", "me"), ("PGDATABASE", "d")];
    let place = |connection| connector(connection, &environment).expect("a good string").to_string();
    assert_eq!(place(""), "database \"d\" (user \"me\") at db:7");
    assert_eq!(place("postgresql://smp@other/store"), "database \"store\" (user \"smp\") at other:7");
    assert_eq!(place("postgresql://smp@:8/"), "database \"d\" (user \"smp\") at db:8");
    let mode = connector("user=a", &[("PGSSLMODE", "sometimes")]).expect_err("no mode").to_string();
    assert!(mode.contains("\"sslmode\""), "{mode}");
    assert!(connector("user=a sslmode=disable", &[("PGSSLMODE", "sometimes")]).is_ok());
}

#[test]
fn what_cannot_be_granted_is_refused_by_name() {
    assert!(refusal("user=a colour=red").contains("unknown parameter \"colour\""));
    assert!(refusal("postgresql://a@h/d?colour=red").contains("unknown parameter \"colour\""));
    for connection in ["user=a password=se cret=red", "postgresql://a@h/d?password=se&cret=red"] {
        let text = refusal(connection);
        assert!(text.contains("unknown parameter after the password") && !text.contains("cret"), "{text}");
    }
    assert!(refusal("user=a service=x").contains("\"service\" of the connection string is not supported"));
    for (name, value) in [
        ("sslmode", "yes"),
        ("port", "0"),
        ("port", "65536"),
        ("port", "1,2"),
        ("hostaddr", "db"),
        ("hostaddr", "::1,::2"),
        ("connect_timeout", "soon"),
        ("target_session_attrs", "read-only"),
        ("channel_binding", "maybe"),
        ("client_encoding", "LATIN1"),
        ("sslrootcert", "system sslmode=require"),
        ("sslcert", "only-this"),
    ] {
        let text = refusal(&format!("user=a host=h {name}={value}"));
        let name = if name == "sslrootcert" { "sslmode" } else { name };
        assert!(text.contains(&format!("\"{name}\"")), "{name}={value}: {text}");
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    for connection in [
        "user",
        "user=a host",
        "user='a",
        "us er=a",
        "postgresql://a@[::1/d",
        "postgresql://a@[::1]x/d",
        "postgresql://a@h/d?sslmode",
        "postgresql://a%4@h/d",
        "postgresql://a%00@h/d",
        "postgresql://a%+4@h/d",
        "postgresql://a%FF@h/d",
    ] {
        assert!(refusal(connection).contains("cannot be read"), "{connection}");
    }
}

#[test]
fn every_parameter_of_use_is_taken() {
    let all = "user=a host=h connect_timeout=3 application_name=x options='-c work_mem=1MB' target_session_attrs=read-write \
        channel_binding=prefer sslmode=allow keepalives=1 keepalives_idle=5 keepalives_interval=5 keepalives_count=3 \
        tcp_user_timeout=1000 client_encoding=UTF8 fallback_application_name=y passfile=/none";
    assert_eq!(connector(all, &[]).expect("a good string").timeout(), Duration::from_secs(3));
    assert!(connector("postgresql://a@h/d?ssl=true&target_session_attrs=primary", &[]).is_ok());
    assert_eq!(connector("user=a", &[]).expect("a good string").timeout(), Duration::from_secs(20), "10 s a host");
}

#[test]
fn no_output_has_a_password() {
    let secret = "hunter2";
    let good = ["postgresql://a:hunter2@h/d", "user=a password=hunter2", "postgresql://a@h/d?password=hunter2"];
    for connection in good {
        let connector = connector(connection, &[("PGPASSWORD", secret)]).expect("a good string");
        for text in [format!("{connector}"), format!("{connector:?}"), format!("{:?}", options(connection))] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    for bad in [
        "postgresql://a:p@hunter2@h/d",
        "postgresql://a:1/hunter2@h/d",
        "postgresql://a:p/hunter2@h/d",
        "postgresql://a:%hunter2@h/d",
        "user=a password=my hunter2",
        "user=a password='hunter2",
        "user=a port=hunter2",
    ] {
        let error = connector(bad, &[]).expect_err("a bad string");
        assert!(!format!("{error} {error:?}").contains(secret), "{bad}: {error:?}");
    }
}

#[test]
fn names_of_schemas_are_those_that_need_no_quotes() {
    for name in ["smp_server", "_x", "s2", &"a".repeat(63)] {
        assert_eq!(name.parse::<SchemaName>().map(|name| name.to_string()).as_deref(), Ok(name));
    }
    for name in ["", "2s", "Smp", "a-b", "a b", "a\"; DROP TABLE x", "ä", &"a".repeat(64)] {
        let error = name.parse::<SchemaName>().expect_err("a refusal").to_string();
        assert!(error.contains(&format!("\"{name}\"")), "{error}");
    }
    assert_eq!("user".parse::<SchemaName>().map(|name| name.quoted()).as_deref(), Ok("\"user\""));
}
