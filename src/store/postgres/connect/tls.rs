//! TLS to the database, as libpq does it.
//!
//! `disable` never encrypts, `allow` does where the server lets nobody in without, `prefer` (the default) where the server
//! can, `require` and the two after it always. Whose certificate it is they do not ask, so that somebody between us and the
//! database could read everything; `verify-ca` wants one signed by the roots in `sslrootcert`, and `verify-full` also that
//! it is of the host's name. `require` with an `sslrootcert` is as good as `verify-ca`. At a Unix socket there is no TLS,
//! whatever the mode.

use std::path::{Path, PathBuf};

use openssl::error::ErrorStack;
use openssl::ssl::{SslConnector, SslConnectorBuilder, SslFiletype, SslMethod, SslVerifyMode, SslVersion};
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;
use postgres_openssl::MakeTlsConnector;
use tokio_postgres::config::SslMode;

use super::parameters::{Parameters, StringError};

/// `sslmode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The `sslrootcert` that stands for the roots that the system trusts.
const SYSTEM: &str = "system";

impl Mode {
    /// The mode of the parameters; `prefer` if they have none, and `verify-full` if the roots are the system's: anybody can
    /// get a certificate from one of those.
    pub fn read(parameters: &Parameters) -> Result<Mode, StringError> {
        let system = parameters.get("sslrootcert") == Some(SYSTEM);
        let mode = match parameters.get("sslmode") {
            Some("disable") => Mode::Disable,
            Some("allow") => Mode::Allow,
            None if system => Mode::VerifyFull,
            None | Some("prefer") => Mode::Prefer,
            Some("require") => Mode::Require,
            Some("verify-ca") => Mode::VerifyCa,
            Some("verify-full") => Mode::VerifyFull,
            Some(_) => {
                let allowed = "disable, allow, prefer, require, verify-ca or verify-full";
                return Err(StringError::Value { name: "sslmode", allowed });
            }
        };
        match system && mode != Mode::VerifyFull {
            true => Err(StringError::Value { name: "sslmode", allowed: "verify-full with sslrootcert=system" }),
            false => Ok(mode),
        }
    }

    /// The ways to connect over TCP, in their order.
    pub fn attempts(self) -> &'static [SslMode] {
        match self {
            Mode::Disable => &[SslMode::Disable],
            Mode::Allow => &[SslMode::Disable, SslMode::Require],
            Mode::Prefer => &[SslMode::Prefer, SslMode::Disable],
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => &[SslMode::Require],
        }
    }
}

/// What makes TLS connections in this mode.
pub(super) fn connector(
    mode: Mode,
    parameters: &Parameters,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<MakeTlsConnector, StringError> {
    let failed = |error: ErrorStack| StringError::Certificate { path: "TLS".to_owned(), reason: error.to_string() };
    let mut builder = SslConnector::builder(SslMethod::tls_client()).map_err(failed)?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_2)).map_err(failed)?;
    let verified = trust(&mut builder, mode, parameters, variable)?;
    builder.set_verify(if verified { SslVerifyMode::PEER } else { SslVerifyMode::NONE });
    identify(&mut builder, parameters)?;
    let mut connector = MakeTlsConnector::new(builder.build());
    connector.set_callback(move |connection, _| {
        connection.set_verify_hostname(mode == Mode::VerifyFull);
        Ok(())
    });
    Ok(connector)
}

/// Sets whom to trust; answers whether the certificate is to be verified at all.
fn trust(
    builder: &mut SslConnectorBuilder,
    mode: Mode,
    parameters: &Parameters,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<bool, StringError> {
    let given = parameters.get("sslrootcert");
    let default = || variable("HOME").map(|home| Path::new(&home).join(".postgresql/root.crt"));
    let roots = match (mode, given) {
        (Mode::Disable | Mode::Allow | Mode::Prefer, _) | (Mode::Require, None) => return Ok(false),
        // Those are what the builder starts with.
        (_, Some(SYSTEM)) => return Ok(true),
        (_, Some(path)) => PathBuf::from(path),
        (_, None) => default().filter(|path| path.exists()).ok_or(StringError::Value {
            name: "sslrootcert",
            allowed: "a file with the certificate that signed the database's (or \"system\"), as sslmode verifies it",
        })?,
    };
    let failed = |reason: String| StringError::Certificate { path: roots.display().to_string(), reason };
    let pem = std::fs::read(&roots).map_err(|error| failed(error.to_string()))?;
    let certificates = X509::stack_from_pem(&pem).ok().filter(|certificates| !certificates.is_empty());
    let certificates = certificates.ok_or_else(|| failed("there is no PEM certificate in this file".to_owned()))?;
    let mut store = X509StoreBuilder::new().map_err(|error| failed(error.to_string()))?;
    for certificate in certificates {
        store.add_cert(certificate).map_err(|error| failed(error.to_string()))?;
    }
    builder.set_cert_store(store.build());
    Ok(true)
}

/// Sets our own certificate, for databases that want one.
fn identify(builder: &mut SslConnectorBuilder, parameters: &Parameters) -> Result<(), StringError> {
    let (Some(certificate), Some(key)) = (parameters.get("sslcert"), parameters.get("sslkey")) else {
        return match parameters.get("sslcert").or(parameters.get("sslkey")) {
            None => Ok(()),
            Some(_) => Err(StringError::Value { name: "sslcert", allowed: "given together with sslkey" }),
        };
    };
    let failed = |path: &str| {
        let path = path.to_owned();
        move |error: ErrorStack| StringError::Certificate { path, reason: error.to_string() }
    };
    builder.set_certificate_chain_file(certificate).map_err(failed(certificate))?;
    builder.set_private_key_file(key, SslFiletype::PEM).map_err(failed(key))
}
