//! Where everything lies: the configuration directory and the log directory, and the names of the files in them.

use std::path::PathBuf;

use super::Environment;
use crate::store::sqlite::FILE_NAME;

const DEFAULT_CONFIG_PATH: &str = "/etc/opt/simplex";
const DEFAULT_LOG_PATH: &str = "/var/opt/simplex";

/// The two directories of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// INI file, certificates, keys and fingerprint: `SMP_SERVER_CFG_PATH`.
    pub config: PathBuf,
    /// The store and everything else that the server writes: `SMP_SERVER_LOG_PATH`.
    pub log: PathBuf,
}

impl Paths {
    /// The directories that `SMP_SERVER_CFG_PATH` and `SMP_SERVER_LOG_PATH` name, by default `/etc/opt/simplex` and
    /// `/var/opt/simplex`.
    pub fn from_environment(environment: &Environment) -> Self {
        let path = |name, default| PathBuf::from(environment.get(name).unwrap_or(default));
        Paths {
            config: path("SMP_SERVER_CFG_PATH", DEFAULT_CONFIG_PATH),
            log: path("SMP_SERVER_LOG_PATH", DEFAULT_LOG_PATH),
        }
    }

    /// The settings.
    pub fn ini(&self) -> PathBuf {
        self.config.join("smp-server.ini")
    }

    /// Certificate of the authority: its SHA-256 is the server's identity.
    pub fn ca_certificate(&self) -> PathBuf {
        self.config.join("ca.crt")
    }

    /// Key of the authority, needed only to sign server certificates; best kept elsewhere.
    pub fn ca_key(&self) -> PathBuf {
        self.config.join("ca.key")
    }

    /// Certificate of the TLS server, signed by the authority.
    pub fn server_certificate(&self) -> PathBuf {
        self.config.join("server.crt")
    }

    /// Key of the TLS server.
    pub fn server_key(&self) -> PathBuf {
        self.config.join("server.key")
    }

    /// The identity in Base64 (URL alphabet, padded): part of the server's address.
    pub fn fingerprint(&self) -> PathBuf {
        self.config.join("fingerprint")
    }

    /// The embedded store.
    pub fn store(&self) -> PathBuf {
        self.log.join(FILE_NAME)
    }

    /// Files and directories in which the Haskell server keeps queues and messages.
    pub fn foreign_stores(&self) -> [PathBuf; 3] {
        ["smp-server-store.log", "smp-server-messages.log", "messages"].map(|name| self.log.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_from_the_environment_or_the_usual_places() {
        let usual = Paths::from_environment(&Environment::default());
        assert_eq!(usual.ini(), PathBuf::from("/etc/opt/simplex/smp-server.ini"));
        assert_eq!(usual.store(), PathBuf::from("/var/opt/simplex/smp-server.db"));
        let own = [("SMP_SERVER_CFG_PATH", "/a"), ("SMP_SERVER_LOG_PATH", "")];
        let own = Paths::from_environment(&Environment::from(own));
        assert_eq!(own.fingerprint(), PathBuf::from("/a/fingerprint"));
        assert_eq!(own.log, PathBuf::from("/var/opt/simplex"));
    }
}
