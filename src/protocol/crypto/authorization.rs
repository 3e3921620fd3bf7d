//! Authorization of commands: who may do what is decided by a signature or by an authenticator.
//! Spec: "Authenticating commands".
//!
//! An authenticator is a crypto_box of the SHA-512 of what is authorized, between the key of the queue and the key of the
//! session: unlike a signature it convinces nobody else. How long a refusal takes must not tell whether the queue
//! exists: the work depends on the kind of authorization that the client sent, and on nothing else.

use std::sync::LazyLock;

use subtle::ConstantTimeEq;

use super::dh::SecretDhKey;
use super::digest::sha512_of_parts;
use super::nonce::Nonce;
use super::signature::{verify_ed448, verify_ed25519};
use super::signing_key::SigningKey;
use super::{CryptoError, SharedSecret};
use crate::protocol::ids::CorrelationId;
use crate::protocol::keys::{PublicAuthKey, PublicDhKey};
use crate::protocol::transmission::{Authorization, Signature};

/// Whether `authorization` allows the owner of `key` what is in `authorized`, given in parts that follow each other.
///
/// No authorization allows nothing. With a key of another kind, or without any (no such queue), a key that nobody owns is
/// verified against instead, and the answer is no whatever comes out. `session_key` is the server's in this session.
pub fn verify_authorization(
    key: Option<&PublicAuthKey>,
    authorization: &Authorization,
    authorized: &[&[u8]],
    correlation_id: &CorrelationId,
    session_key: &SecretDhKey,
) -> bool {
    match authorization {
        Authorization::None => false,
        Authorization::Signature(Signature::Ed25519(signature)) => {
            let key = key.and_then(|key| if let PublicAuthKey::Ed25519(key) = key { Some(key) } else { None });
            decide(key, &NOBODY.ed25519, |key| verify_ed25519(key, authorized, signature))
        }
        Authorization::Signature(Signature::Ed448(signature)) => {
            let key = key.and_then(|key| if let PublicAuthKey::Ed448(key) = key { Some(&**key) } else { None });
            decide(key, &NOBODY.ed448, |key| verify_ed448(key, authorized, &signature[..]))
        }
        Authorization::Authenticator(authenticator) => {
            let key = key.and_then(|key| if let PublicAuthKey::X25519(key) = key { Some(key) } else { None });
            let nonce = Nonce::from(correlation_id);
            decide(key, &NOBODY.x25519, |key| {
                let secret = session_key.agree(key).ok()?;
                Some(authenticate(&secret, &nonce, authorized).as_slice().ct_eq(authenticator).into())
            })
        }
    }
}

/// Verifies with `key`; without a usable key does the same work with `nobody`'s and says no.
fn decide<K>(key: Option<&K>, nobody: &K, verify: impl Fn(&K) -> Option<bool>) -> bool {
    #[cfg(test)]
    let verify = |key: &K| work::counted(verify(key));
    key.and_then(&verify).unwrap_or_else(|| {
        // The compiler must not find out that the result is not used.
        std::hint::black_box(verify(std::hint::black_box(nobody)));
        false
    })
}

/// The work of verifying, counted: what a client could tell from the time of an answer, without measuring time.
#[cfg(test)]
pub(crate) mod work {
    use std::cell::Cell;

    thread_local! {
        static VERIFICATIONS: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts a verification that came to a result; one that did not has done next to nothing.
    pub(super) fn counted(verified: Option<bool>) -> Option<bool> {
        VERIFICATIONS.set(VERIFICATIONS.get() + usize::from(verified.is_some()));
        verified
    }

    /// Verifications on this thread since the last call.
    pub(crate) fn take() -> usize {
        VERIFICATIONS.take()
    }
}

/// Valid public keys whose secret keys exist no more.
struct Nobody {
    ed25519: [u8; 32],
    ed448: [u8; 57],
    x25519: PublicDhKey,
}

static NOBODY: LazyLock<Nobody> = LazyLock::new(|| Nobody {
    ed25519: match SigningKey::generate_ed25519().public_key() {
        Ok(PublicAuthKey::Ed25519(key)) => key,
        _ => IDENTITY_ED25519,
    },
    ed448: match SigningKey::generate_ed448().and_then(|key| key.public_key()) {
        Ok(PublicAuthKey::Ed448(key)) => *key,
        _ => IDENTITY_ED448,
    },
    x25519: SecretDhKey::generate().public_key(),
});

/// The neutral point: valid, always there, and never answered with yes. Used if a library cannot generate a key.
const IDENTITY_ED25519: [u8; 32] = neutral_point();
/// The neutral point of the other curve.
const IDENTITY_ED448: [u8; 57] = neutral_point();

const fn neutral_point<const N: usize>() -> [u8; N] {
    let mut point = [0; N];
    point[0] = 1;
    point
}

/// The authenticator of `authorized` between the two keys that agree `secret`.
fn authenticate(secret: &SharedSecret, nonce: &Nonce, authorized: &[&[u8]]) -> Vec<u8> {
    secret.box_key().seal(nonce, &sha512_of_parts(authorized))
}

/// The client's side: a secret key that authorizes commands.
#[derive(Clone)]
pub enum PrivateAuthKey {
    /// By signatures.
    Signing(SigningKey),
    /// By authenticators (version 7+).
    Dh(SecretDhKey),
}

impl PrivateAuthKey {
    /// The public key to give to the server.
    ///
    /// # Errors
    /// As [`SigningKey::public_key`].
    pub fn public_key(&self) -> Result<PublicAuthKey, CryptoError> {
        match self {
            PrivateAuthKey::Signing(key) => key.public_key(),
            PrivateAuthKey::Dh(key) => Ok(PublicAuthKey::X25519(key.public_key())),
        }
    }

    /// The authorization of `authorized` in a transmission with this correlation ID, for the server whose session key
    /// is `session_key`.
    ///
    /// # Errors
    /// [`CryptoError::Signing`], or [`CryptoError::Key`] when the server's key is absent or of no use.
    pub fn authorize(
        &self,
        authorized: &[u8],
        correlation_id: &CorrelationId,
        session_key: Option<&PublicDhKey>,
    ) -> Result<Authorization, CryptoError> {
        let authorization = match self {
            PrivateAuthKey::Signing(key) => key.sign(authorized)?,
            PrivateAuthKey::Dh(key) => {
                let secret = key.agree(session_key.ok_or(CryptoError::Key)?)?;
                authenticate(&secret, &Nonce::from(correlation_id), &[authorized])
            }
        };
        Authorization::from_bytes(&authorization).map_err(|_| CryptoError::Signing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::crypto::DhKeyPair;
    use crate::protocol::crypto::test_vectors::{array, bytes, cases, vectors};

    fn keys() -> [PrivateAuthKey; 3] {
        [
            PrivateAuthKey::Signing(SigningKey::generate_ed25519()),
            PrivateAuthKey::Signing(SigningKey::generate_ed448().expect("a key")),
            PrivateAuthKey::Dh(SecretDhKey::generate()),
        ]
    }

    #[test]
    fn authenticators_are_those_of_the_reference() {
        let vectors = vectors("crypto.json");
        let key = |name: &str| SecretDhKey::from_bytes(array(&vectors["keys"][name]["private_raw"]));
        let (queue_key, session_key) = (key("alice_x25519"), key("bob_x25519"));
        let public = PublicAuthKey::X25519(queue_key.public_key());
        let checked = cases(&vectors["cb_authenticate"]["cases"], |case| {
            let id = CorrelationId(bytes(&case["corr_id"]).into());
            let (authorized, expected) = (bytes(&case["authorized"]), bytes(&case["authenticator"]));
            let made =
                PrivateAuthKey::Dh(queue_key.clone()).authorize(&authorized, &id, Some(&session_key.public_key()));
            let made = made.expect("authorized");
            assert_eq!(made.as_bytes(), expected);
            assert!(verify_authorization(Some(&public), &made, &[&authorized], &id, &session_key));
            assert!(!verify_authorization(Some(&public), &made, &[b"another message"], &id, &session_key));
        });
        assert_eq!(checked, 4);
    }

    #[test]
    fn each_key_verifies_its_own_authorization_and_no_other() {
        let session = DhKeyPair::generate();
        let id = CorrelationId(b"correlation ID".as_slice().into());
        let keys = keys();
        for (i, author) in keys.iter().enumerate() {
            let authorization = author.authorize(b"command", &id, Some(&session.public)).expect("authorized");
            let verify = |key: Option<&PublicAuthKey>, command: &[u8]| {
                verify_authorization(key, &authorization, &[&command[..3], &command[3..]], &id, &session.secret)
            };
            for (j, owner) in keys.iter().enumerate() {
                let public = owner.public_key().expect("a key");
                assert_eq!(verify(Some(&public), b"command"), i == j);
                assert!(!verify(Some(&public), b"another command"));
            }
            assert!(!verify(None, b"command"));
        }
    }

    #[test]
    fn no_authorization_and_unusable_keys_are_refused() {
        let session = SecretDhKey::generate();
        let unusable = [
            PublicAuthKey::Ed25519([2; 32]),
            PublicAuthKey::Ed448(Box::new([0xff; 57])),
            PublicAuthKey::X25519(PublicDhKey([0; 32])),
        ];
        for length in [0, 64, 80, 114] {
            let authorization = Authorization::from_bytes(&vec![0; length]).expect("a known length");
            for key in unusable.iter().map(Some).chain([None]) {
                assert!(!verify_authorization(key, &authorization, &[], &CorrelationId::NONE, &session));
            }
        }
    }

    #[test]
    fn whatever_is_wrong_one_verification_is_made() {
        let session = DhKeyPair::generate();
        let id = CorrelationId(b"correlation ID".as_slice().into());
        let unusable = [
            PublicAuthKey::Ed25519([2; 32]),
            PublicAuthKey::Ed448(Box::new([0xff; 57])),
            PublicAuthKey::X25519(PublicDhKey([0; 32])),
        ];
        let owners: Vec<_> = keys().iter().map(|key| key.public_key().expect("a key")).chain(unusable).collect();
        for author in keys() {
            let authorization = author.authorize(b"command", &id, Some(&session.public)).expect("authorized");
            let own = author.public_key().expect("a key");
            for key in owners.iter().chain([&own]).map(Some).chain([None]) {
                work::take();
                let allowed = verify_authorization(key, &authorization, &[b"command"], &id, &session.secret);
                assert_eq!((allowed, work::take()), (key == Some(&own), 1), "{authorization:?}");
            }
        }
    }

    #[test]
    fn nobody_has_valid_keys() {
        assert_ne!(NOBODY.ed25519, IDENTITY_ED25519);
        assert_ne!(NOBODY.ed448, IDENTITY_ED448);
        assert_eq!(verify_ed25519(&NOBODY.ed25519, &[], &[0; 64]), Some(false));
        assert_eq!(verify_ed448(&NOBODY.ed448, &[], &[0; 114]), Some(false));
        assert!(SecretDhKey::generate().agree(&NOBODY.x25519).is_ok());
    }
}
