//! The stores that every behaviour is shown on. Another store is added here, and only here.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, Weak};

use super::cluster::Cluster;
use super::relay::Relay;
use super::server::{Installation, Server};

/// Where a relay keeps queues and messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Store {
    /// The embedded store in a file.
    Sqlite,
    /// The embedded store in memory.
    Memory,
    /// PostgreSQL: a schema of its own in the database of all tests.
    Postgres,
}

/// Makes a test of each function for each store: `sqlite::NAME`, `memory::NAME`, ... What stands after `lasting:` is only
/// for stores that outlive their server.
macro_rules! for_each_store {
    (@ $module:ident $store:ident: $($name:ident)*) => {
        mod $module {
            $(#[tokio::test]
            async fn $name() {
                super::$name($crate::support::Store::$store).await;
            })*
        }
    };
    (lasting: $($name:ident),+ $(,)?) => {
        $crate::support::for_each_store!(@ sqlite Sqlite: $($name)+);
        $crate::support::for_each_store!(@ postgres Postgres: $($name)+);
    };
    ($($name:ident),+ $(,)? $(; lasting: $($lasting:ident),+ $(,)?)?) => {
        $crate::support::for_each_store!(@ sqlite Sqlite: $($name)+ $($($lasting)+)?);
        $crate::support::for_each_store!(@ memory Memory: $($name)+);
        $crate::support::for_each_store!(@ postgres Postgres: $($name)+ $($($lasting)+)?);
    };
}
pub(crate) use for_each_store;

/// The same for functions that block, and for stores that outlive their server.
macro_rules! for_each_lasting_store {
    (@ $module:ident $store:ident: $($name:ident),+) => {
        mod $module {
            $(#[test]
            fn $name() {
                super::$name($crate::support::Store::$store);
            })+
        }
    };
    ($($name:ident),+ $(,)?) => {
        $crate::support::for_each_lasting_store!(@ sqlite Sqlite: $($name),+);
        $crate::support::for_each_lasting_store!(@ postgres Postgres: $($name),+);
    };
}
pub(crate) use for_each_lasting_store;

/// Relays with nothing but the store set, which tests of a store share while any of them runs.
static SHARED: LazyLock<Mutex<HashMap<Store, Weak<Relay>>>> = LazyLock::new(Mutex::default);

impl Store {
    /// An installation on this store.
    pub fn installation(self) -> Installation {
        let mut installation = Installation::new();
        let enable = if self == Store::Memory { "off" } else { "on" };
        installation.set("STORE_LOG", "enable", enable);
        installation.set("STORE_LOG", "restore_messages", enable);
        if self == Store::Postgres {
            installation.keep_in(Cluster::shared().schema());
        }
        installation
    }

    /// A server on this store: initialised, started, listening.
    pub fn server(self) -> Server {
        Server::start_in(self.installation())
    }

    /// A relay that other tests use at the same time.
    pub fn relay(self) -> Arc<Relay> {
        // A test that failed while it started a relay does not keep the others from starting one.
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(relay) = shared.get(&self).and_then(Weak::upgrade) {
            return relay;
        }
        let relay = Arc::new(Relay::start(self.installation()));
        shared.insert(self, Arc::downgrade(&relay));
        relay
    }

    /// A relay of the test's own, with these settings: section, key, value.
    pub fn relay_with(self, settings: &[(&str, &str, &str)]) -> Relay {
        let installation = self.installation();
        for (section, key, value) in settings {
            installation.set(section, key, value);
        }
        Relay::start(installation)
    }
}
