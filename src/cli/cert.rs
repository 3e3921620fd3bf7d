//! `smp-server cert`: a new key and certificate for TLS, signed by the same authority, so that the identity stays.

use zeroize::Zeroizing;

use super::certificates::{self, Credential, SignAlgorithm};
use super::console::Console;
use super::error::CommandError;
use super::files::{Access, Replacement};
use super::identity::{read_certificate, read_key};
use super::init::{check_common_name, warn_about_authority_key};
use super::options::CertOptions;
use crate::settings::Paths;

/// Replaces `server.key` and `server.crt`; what is not asked for stays as in the old certificate.
pub fn cert(paths: &Paths, options: &CertOptions, console: &mut Console<'_>) -> Result<(), CommandError> {
    super::require_installation(paths)?;
    let authority = read_authority(paths)?;
    let (algorithm, common_name) = wanted(paths, options)?;
    check_common_name(&common_name)?;
    let server = authority.issue_server(algorithm, &common_name)?;
    let mut replacement = Replacement::default();
    let key = Zeroizing::new(server.key.private_key_to_pem_pkcs8()?);
    replacement.prepare(&paths.server_key(), &key, Access::Private)?;
    replacement.prepare(&paths.server_certificate(), &server.certificate.to_pem()?, Access::Public)?;
    replacement.commit()?;
    console.say("Generated new server credentials. Restart the server to use them.")?;
    warn_about_authority_key(paths, console)
}

fn read_authority(paths: &Paths) -> Result<Credential, CommandError> {
    let path = paths.ca_key();
    if !path.exists() {
        return Err(CommandError::refused(format!(
            "{} is not there: only the key of the authority can sign a new certificate.\n\
             Put it back for the time of this command.",
            path.display()
        )));
    }
    let authority = Credential { certificate: read_certificate(&paths.ca_certificate())?, key: read_key(&path)? };
    if !authority.certificate.public_key()?.public_eq(&authority.key) {
        return Err(CommandError::refused(format!("{} is not the key of ca.crt", path.display())));
    }
    Ok(authority)
}

fn wanted(paths: &Paths, options: &CertOptions) -> Result<(SignAlgorithm, String), CommandError> {
    if let (Some(algorithm), Some(name)) = (options.sign_algorithm, &options.common_name) {
        return Ok((algorithm, name.clone()));
    }
    let path = paths.server_certificate();
    let old = read_certificate(&path)?;
    let missing = |what: &str, option: &str| {
        CommandError::refused(format!("{} has no {what} to keep: pass {option}", path.display()))
    };
    let algorithm = options.sign_algorithm.or(SignAlgorithm::of(&*old.public_key()?));
    let name = options.common_name.clone().or_else(|| certificates::common_name(&old));
    Ok((
        algorithm.ok_or_else(|| missing("Ed25519 or Ed448 key", "--sign-algorithm"))?,
        name.ok_or_else(|| missing("common name", "--cn"))?,
    ))
}
