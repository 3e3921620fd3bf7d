//! The store in PostgreSQL, in the Haskell server's own schema.

pub mod connect;
pub mod lock;
pub mod schema;

#[cfg(test)]
#[path = "../../../tests/it/support/cluster.rs"]
pub(crate) mod cluster;

#[cfg(test)]
mod tests {
    use super::cluster::Cluster;

    #[test]
    fn cluster_starts() {
        let schema = Cluster::shared().schema();
        assert_eq!(schema.sql(format!("CREATE SCHEMA {}; SELECT 1", schema.name())), "1");
        let own = Cluster::start(&[]);
        assert_eq!(own.sql("SELECT 2"), "2");
        own.kill();
        own.run();
        assert_eq!(own.sql("SELECT 3"), "3");
    }
}
