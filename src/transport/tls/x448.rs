//! Key exchange over Curve448 (RFC 7748, RFC 8446 section 7.4.2), by OpenSSL: rustls has none.
//!
//! Existing clients send a share of this group and no other; without it each of them pays one more round trip.

use openssl::derive::Deriver;
use openssl::error::ErrorStack;
use openssl::pkey::{Id, PKey, Private};
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};
use zeroize::Zeroizing;

/// Length of a public key and of the shared secret, bytes.
const LENGTH: usize = 56;

/// The X448 group.
#[derive(Debug)]
pub(super) struct X448;

impl SupportedKxGroup for X448 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let exchange = X448Exchange::generate().map_err(|_| Error::FailedToGetRandomBytes)?;
        Ok(Box::new(exchange))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X448
    }
}

/// An exchange that waits for the peer's share.
struct X448Exchange {
    private: PKey<Private>,
    public: Vec<u8>,
}

impl X448Exchange {
    fn generate() -> Result<Self, ErrorStack> {
        let private = PKey::generate_x448()?;
        let public = private.raw_public_key()?;
        Ok(X448Exchange { private, public })
    }

    /// The shared secret; OpenSSL refuses the points of small order, whose secret would be zero.
    fn agree(&self, peer: &[u8]) -> Result<Zeroizing<[u8; LENGTH]>, ErrorStack> {
        let peer = PKey::public_key_from_raw_bytes(peer, Id::X448)?;
        let mut deriver = Deriver::new(&self.private)?;
        deriver.set_peer(&peer)?;
        let mut secret = Zeroizing::new([0; LENGTH]);
        deriver.derive(secret.as_mut_slice())?;
        Ok(secret)
    }
}

impl ActiveKeyExchange for X448Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let secret = self.agree(peer).map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
        Ok(SharedSecret::from(secret.as_slice()))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X448
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::crypto::test_vectors::unhex;

    const ALICE: &str = concat!(
        "9a8f4925d1519f5775cf46b04b5800d4ee9ee8bae8bc5565d498c28d",
        "d9c9baf574a9419744897391006382a6f127ab1d9ac2d8c0a598726b"
    );
    const BOB_PUBLIC: &str = concat!(
        "3eb7a829b0cd20f5bcfc0b599b6feccf6da4627107bdb0d4f345b430",
        "27d8b972fc3e34fb4232a13ca706dcb57aec3dae07bdc1c67bf33609"
    );
    const SECRET: &str = concat!(
        "07fff4181ac6cc95ec1c16a94a0f74d12da232ce40a77552281d282b",
        "b60c0b56fd2464c335543936521c24403085d59a449a5037514a879d"
    );

    /// RFC 7748, section 6.2.
    #[test]
    fn agrees_the_secret_of_the_rfc() {
        let private = PKey::private_key_from_raw_bytes(&unhex(ALICE), Id::X448).unwrap();
        let exchange = X448Exchange { public: private.raw_public_key().unwrap(), private };
        assert_eq!(exchange.agree(&unhex(BOB_PUBLIC)).unwrap().as_slice(), unhex(SECRET));
    }

    #[test]
    fn both_sides_agree() {
        let (one, other) = (X448.start().unwrap(), X448.start().unwrap());
        let (one_public, other_public) = (one.pub_key().to_vec(), other.pub_key().to_vec());
        let (one, other) = (one.complete(&other_public).unwrap(), other.complete(&one_public).unwrap());
        assert_eq!(one.secret_bytes(), other.secret_bytes());
    }

    #[test]
    fn refuses_a_point_of_small_order_and_a_wrong_length() {
        for share in [vec![0; LENGTH], vec![1; LENGTH - 1], vec![]] {
            assert!(X448.start().unwrap().complete(&share).is_err());
        }
    }
}
