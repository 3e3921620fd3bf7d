//! Who may be at the other end of a TLS connection: what a server demands of clients, and a client of a relay.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme};

use super::{chain, signature};
use crate::protocol::certificate::{ChainParts, Fingerprint};

/// The part that is the same on both sides: signatures by Ed25519 and Ed448, and none of TLS 1.2.
macro_rules! signatures_of_tls13 {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(PeerIncompatible::ServerDoesNotSupportTls12Or13.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            signature::verify(message, certificate, signed.scheme, signed.signature())?;
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            signature::SCHEMES.to_vec()
        }
    };
}

/// A server's view of clients: a certificate is asked for, without naming authorities, and need not be there.
#[derive(Debug)]
pub(super) struct AnyClient;

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        chain::validate(leaf, others, now)?;
        Ok(ClientCertVerified::assertion())
    }

    signatures_of_tls13!();
}

/// A client's view of a relay: whatever its name, its chain of 2 to 4 certificates has this identity.
#[derive(Debug)]
pub(super) struct RelayWithFingerprint(pub Fingerprint);

impl RelayWithFingerprint {
    fn check_identity(&self, leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<(), Error> {
        if others.is_empty() {
            return Err(CertificateError::UnknownIssuer.into());
        }
        let chain: Vec<&[u8]> = std::iter::once(leaf).chain(others).map(|certificate| certificate.as_ref()).collect();
        let parts = ChainParts::of(&chain).map_err(|_| CertificateError::ApplicationVerificationFailure)?;
        if Fingerprint::of(parts.identity) == self.0 { Ok(()) } else { Err(CertificateError::UnknownIssuer.into()) }
    }
}

impl ServerCertVerifier for RelayWithFingerprint {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check_identity(leaf, others)?;
        chain::validate(leaf, others, now)?;
        Ok(ServerCertVerified::assertion())
    }

    signatures_of_tls13!();
}
