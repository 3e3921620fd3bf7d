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
    let several = "database \"me\" (user \"me\") at one:1, 2001:db8::1:2, /run/three:5432";
    assert!(place("postgresql://me@one:1,[2001:db8::1]:2,three").ends_with("one:1, 2001:db8::1:2, three:5432"));
    assert_eq!(
        place("host=one,/run/x port=1,2 user=me").replace("/run/x/.s.PGSQL.2", ""),
        several[..36].to_owned() + ":1, "
    );
    assert!(place("postgresql://me@%2Frun%2Fx:7/d").ends_with("at /run/x/.s.PGSQL.7"));
    assert!(place("postgresql://me@/d?host=/run/x&port=7").ends_with("at /run/x/.s.PGSQL.7"));
    assert!(place("user=me hostaddr=127.0.0.1").ends_with("at 127.0.0.1:5432"));
}
