//! The layers of forwarding: client, `PFWD`, proxy, `RFWD`, relay, `RRES`, proxy, `PRES`, client. Spec: "Proxying sender
//! commands".
//!
//! The inner layer ([`CommandBox`]) is between client and relay: the proxy cannot read it. The outer one
//! ([`RelayBox`]) is between proxy and relay: who watches both connections of the proxy cannot match what goes in and
//! what comes out. Answers use the reversed nonce of what they answer.

use bytes::Bytes;
use thiserror::Error;

use super::crypto::{BoxKey, CryptoError, Nonce, SecretDhKey, SharedSecret};
use super::encoding::{Decode, DecodeError, Encode, Reader, put_short};
use super::error::{CommandError, ErrorType};
use super::ids::CorrelationId;
use super::keys::PublicDhKey;
use super::version::Version;

/// Length of the payload inside the inner layer after padding, in bytes, in both directions.
const PADDED_PAYLOAD: usize = 16_226;

/// Why a layer cannot be made or taken off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ForwardError {
    /// Not encrypted with these keys and nonce.
    #[error("a forwarded transmission cannot be decrypted")]
    Crypto,
    /// Decrypted, but malformed.
    #[error("a forwarded transmission is malformed")]
    Malformed,
    /// The payload does not fit.
    #[error("too large to be forwarded")]
    TooLarge,
}

impl From<CryptoError> for ForwardError {
    fn from(error: CryptoError) -> Self {
        match error {
            CryptoError::TooLarge => ForwardError::TooLarge,
            CryptoError::Decryption | CryptoError::Padding | CryptoError::Key | CryptoError::Signing => {
                ForwardError::Crypto
            }
        }
    }
}

/// What a relay answers to the proxy.
impl From<ForwardError> for ErrorType {
    fn from(error: ForwardError) -> Self {
        match error {
            ForwardError::Crypto => ErrorType::Crypto,
            ForwardError::Malformed => ErrorType::Cmd(CommandError::Syntax),
            ForwardError::TooLarge => ErrorType::Block,
        }
    }
}

/// The inner layer, of one command and its response. Both ends make it of their own secret key and the other's public
/// key: the client a new key for each command, the relay its session key with the proxy.
pub struct CommandBox {
    key: BoxKey,
    nonce: Nonce,
}

impl CommandBox {
    /// The layer of the command with this correlation ID, which is that of `PFWD` and of the transmission inside.
    ///
    /// # Errors
    /// [`ForwardError::Crypto`] if `peer` is a key that agrees no secret.
    pub fn new(own: &SecretDhKey, peer: &PublicDhKey, correlation_id: &CorrelationId) -> Result<Self, ForwardError> {
        Ok(CommandBox { key: own.agree(peer)?.box_key(), nonce: correlation_id.into() })
    }

    /// The client's side: encrypts a payload with one transmission.
    ///
    /// # Errors
    /// [`ForwardError::TooLarge`].
    pub fn seal_command(&self, payload: &[u8]) -> Result<Bytes, ForwardError> {
        self.seal(&self.nonce, payload)
    }

    /// The relay's side: the payload with the command.
    ///
    /// # Errors
    /// [`ForwardError::Crypto`].
    pub fn open_command(&self, sealed: &[u8]) -> Result<Bytes, ForwardError> {
        self.open(&self.nonce, sealed)
    }

    /// The relay's side: encrypts the payload with the response.
    ///
    /// # Errors
    /// [`ForwardError::TooLarge`].
    pub fn seal_response(&self, payload: &[u8]) -> Result<Bytes, ForwardError> {
        self.seal(&self.nonce.reversed(), payload)
    }

    /// The client's side: the payload with the response.
    ///
    /// # Errors
    /// [`ForwardError::Crypto`].
    pub fn open_response(&self, sealed: &[u8]) -> Result<Bytes, ForwardError> {
        self.open(&self.nonce.reversed(), sealed)
    }

    fn seal(&self, nonce: &Nonce, payload: &[u8]) -> Result<Bytes, ForwardError> {
        Ok(self.key.seal_padded(nonce, payload, PADDED_PAYLOAD)?.into())
    }

    fn open(&self, nonce: &Nonce, sealed: &[u8]) -> Result<Bytes, ForwardError> {
        Ok(self.key.open_padded(nonce, sealed)?.into())
    }
}

/// The outer layer, of one `RFWD` and its `RRES`.
pub struct RelayBox {
    key: BoxKey,
    nonce: Nonce,
}

impl RelayBox {
    /// The layer of the `RFWD` with this correlation ID, in the session between proxy and relay with this secret.
    pub fn new(secret: &SharedSecret, correlation_id: &CorrelationId) -> Self {
        RelayBox { key: secret.box_key(), nonce: correlation_id.into() }
    }

    /// The proxy's side: the parameter of `RFWD`.
    pub fn seal_transmission(&self, transmission: &ForwardedTransmission) -> Bytes {
        self.key.seal(&self.nonce, &transmission.encoded()).into()
    }

    /// The relay's side: what `RFWD` carries.
    ///
    /// # Errors
    /// [`ForwardError::Crypto`], [`ForwardError::Malformed`].
    pub fn open_transmission(&self, sealed: &[u8]) -> Result<ForwardedTransmission, ForwardError> {
        self.open(&self.nonce, sealed)
    }

    /// The relay's side: the parameter of `RRES`.
    pub fn seal_response(&self, response: &ForwardedResponse) -> Bytes {
        self.key.seal(&self.nonce.reversed(), &response.encoded()).into()
    }

    /// The proxy's side: what `RRES` carries.
    ///
    /// # Errors
    /// [`ForwardError::Crypto`], [`ForwardError::Malformed`].
    pub fn open_response(&self, sealed: &[u8]) -> Result<ForwardedResponse, ForwardError> {
        self.open(&self.nonce.reversed(), sealed)
    }

    fn open<T: Decode>(&self, nonce: &Nonce, sealed: &[u8]) -> Result<T, ForwardError> {
        let content = Bytes::from(self.key.open(nonce, sealed)?);
        T::decode_all(&content).map_err(|_| ForwardError::Malformed)
    }
}

/// What a proxy gives a relay: the parameters of `PFWD` and its correlation ID.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardedTransmission {
    /// Correlation ID of `PFWD`.
    pub correlation_id: CorrelationId,
    /// Version of the transmission inside.
    pub version: Version,
    /// The client's key for this command.
    pub key: PublicDhKey,
    /// The transmission in its inner layer.
    pub transmission: Bytes,
}

impl Encode for ForwardedTransmission {
    fn encode(&self, out: &mut Vec<u8>) {
        put_short(out, &self.correlation_id.0);
        self.version.encode(out);
        self.key.encode(out);
        out.extend_from_slice(&self.transmission);
    }
}

impl Decode for ForwardedTransmission {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ForwardedTransmission {
            correlation_id: CorrelationId(reader.short()?),
            version: reader.get()?,
            key: reader.get()?,
            transmission: reader.tail(),
        })
    }
}

/// What a relay gives back to a proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardedResponse {
    /// Correlation ID of `PFWD`.
    pub correlation_id: CorrelationId,
    /// The response in its inner layer: the parameter of `PRES`.
    pub response: Bytes,
}

impl Encode for ForwardedResponse {
    fn encode(&self, out: &mut Vec<u8>) {
        put_short(out, &self.correlation_id.0);
        out.extend_from_slice(&self.response);
    }
}

impl Decode for ForwardedResponse {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ForwardedResponse { correlation_id: CorrelationId(reader.short()?), response: reader.tail() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::protocol::block::split_batch;
    use crate::protocol::command::Command;
    use crate::protocol::crypto::test_vectors::{array, bytes, cases, vectors};
    use crate::protocol::crypto::{PrivateAuthKey, SigningKey, sha256, verify_authorization};
    use crate::protocol::ids::{EntityId, SessionId};
    use crate::protocol::response::Response;
    use crate::protocol::transmission::{
        TransmissionParams, decode_commands, decode_responses, encode_command, encode_response,
    };

    fn id(hex: &Value) -> CorrelationId {
        CorrelationId(bytes(hex).into())
    }

    fn secret_key(vectors: &Value, name: &str) -> SecretDhKey {
        SecretDhKey::from_bytes(array(&vectors["keys"][name]["private_raw"]))
    }

    fn params(vectors: &Value, session: &str, version: &Value) -> TransmissionParams {
        let version = Version(u16::try_from(version.as_u64().expect("a version")).expect("a version"));
        TransmissionParams { version, session_id: SessionId(array(&vectors[session])) }
    }

    /// A payload of one transmission.
    fn batch(transmission: &[u8]) -> Vec<u8> {
        let length = u16::try_from(transmission.len()).expect("fits").to_be_bytes();
        [&[1], &length[..], transmission].concat()
    }

    fn command_payload(params: &TransmissionParams, id: &CorrelationId, entity: &[u8], command: &Command) -> Vec<u8> {
        let mut out = Vec::new();
        let entity = EntityId(Bytes::copy_from_slice(entity));
        let none = |_: &[u8]| (crate::protocol::transmission::Authorization::None, None);
        encode_command(params, id, &entity, command, none, &mut out);
        batch(&out)
    }

    fn response_payload(
        params: &TransmissionParams,
        id: &CorrelationId,
        entity: &[u8],
        response: &Response,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        encode_response(params, id, &EntityId(Bytes::copy_from_slice(entity)), response, &mut out);
        batch(&out)
    }

    /// The relay's view of the command inside: it is authorized for the session between proxy and relay.
    fn check_authorization(vectors: &Value, case: &Value, payload: &Bytes) {
        let params = params(vectors, "proxy_relay_session_id", &case["version"]);
        let command = decode_commands(&params, payload).remove(0).expect("a command");
        assert_eq!(command.authorized.to_vec(), bytes(&case["client"]["authorized"]));
        let authorization = bytes(&case["client"]["authorization"]);
        assert_eq!(command.authorization.as_bytes(), authorization);
        let seed = array(&vectors["keys"]["snd_ed25519"]["private_raw"]);
        let key = match authorization.len() {
            0 => return,
            64 => PrivateAuthKey::Signing(SigningKey::ed25519(&seed)),
            _ => PrivateAuthKey::Dh(secret_key(vectors, "snd_x25519")),
        };
        let (session, id) = (secret_key(vectors, "relay_session"), id(&vectors["client_nonce"]));
        let public = key.public_key().expect("a key");
        let made = key.authorize(&command.authorized.to_vec(), &id, Some(&session.public_key())).expect("authorized");
        assert_eq!(made, command.authorization);
        let parts = command.authorized.parts();
        assert!(verify_authorization(Some(&public), &command.authorization, &parts, &id, &session));
    }

    /// Client, proxy and relay of one exchange of the vectors, every layer compared.
    fn run(vectors: &Value, case: &Value) {
        let [client_id, proxy_id] = ["client_nonce", "proxy_nonce"].map(|name| id(&vectors[name]));
        let (relay_key, client_key) = (secret_key(vectors, "relay_session"), secret_key(vectors, "client_command"));
        let version = params(vectors, "proxy_relay_session_id", &case["version"]).version;
        let client_params = params(vectors, "client_proxy_session_id", &case["client_proxy_version"]);
        let relay_params = params(vectors, "proxy_relay_session_id", &case["version"]);

        let client = CommandBox::new(&client_key, &relay_key.public_key(), &client_id).expect("a layer");
        let transmission = client.seal_command(&bytes(&case["client"]["inner_payload"])).expect("fits");
        assert_eq!(transmission, bytes(&case["client"]["encrypted_transmission"]));
        let key = client_key.public_key();
        let pfwd = Command::Pfwd(version, key, transmission.clone());
        let session_id = bytes(&vectors["proxy_relay_session_id"]);
        let payload = command_payload(&client_params, &client_id, &session_id, &pfwd);
        assert_eq!(sha256(&payload).as_slice(), bytes(&case["client"]["pfwd_block_payload_sha256"]));

        let secret = secret_key(vectors, "proxy_session").agree(&relay_key.public_key()).expect("a secret");
        assert_eq!(secret.as_bytes(), &array(&case["proxy"]["session_secret"]));
        let forwarded = ForwardedTransmission { correlation_id: client_id.clone(), version, key, transmission };
        assert_eq!(sha256(&forwarded.encoded()).as_slice(), bytes(&case["proxy"]["forward_transmission_sha256"]));
        let proxy = RelayBox::new(&secret, &proxy_id);
        let sealed = proxy.seal_transmission(&forwarded);
        assert_eq!(sha256(&sealed).as_slice(), bytes(&case["proxy"]["encrypted_sha256"]));
        let payload = command_payload(&relay_params, &proxy_id, b"", &Command::Rfwd(sealed.clone()));
        assert_eq!(payload, bytes(&case["proxy"]["rfwd_block_payload"]));

        assert_eq!(proxy.open_transmission(&sealed).as_ref(), Ok(&forwarded));
        let relay = CommandBox::new(&relay_key, &forwarded.key, &forwarded.correlation_id).expect("a layer");
        let opened = relay.open_command(&forwarded.transmission).expect("opens");
        assert_eq!(opened, bytes(&case["client"]["inner_payload"]));
        check_authorization(vectors, case, &opened);
        run_response(vectors, case, (&relay, &proxy, &client));
    }

    /// The way back of an exchange.
    fn run_response(vectors: &Value, case: &Value, (relay, proxy, client): (&CommandBox, &RelayBox, &CommandBox)) {
        let [client_id, proxy_id] = ["client_nonce", "proxy_nonce"].map(|name| id(&vectors[name]));
        let client_params = params(vectors, "client_proxy_session_id", &case["client_proxy_version"]);
        let relay_params = params(vectors, "proxy_relay_session_id", &case["version"]);
        let inner = bytes(&case["relay"]["inner_payload"]);
        assert_eq!(split_batch(&inner.clone().into()).map(|batch| batch.len()), Ok(1));
        let response = relay.seal_response(&inner).expect("fits");
        assert_eq!(sha256(&response).as_slice(), bytes(&case["relay"]["encrypted_response_sha256"]));
        let forwarded = ForwardedResponse { correlation_id: client_id.clone(), response };
        let sealed = proxy.seal_response(&forwarded);
        assert_eq!(sha256(&sealed).as_slice(), bytes(&case["relay"]["encrypted_sha256"]));
        let payload = response_payload(&relay_params, &proxy_id, b"", &Response::Rres(sealed.clone()));
        assert_eq!(payload, bytes(&case["relay"]["rres_block_payload"]));

        assert_eq!(proxy.open_response(&sealed).as_ref(), Ok(&forwarded));
        let pres = Response::Pres(forwarded.response.clone());
        let session_id = bytes(&vectors["proxy_relay_session_id"]);
        let payload = response_payload(&client_params, &client_id, &session_id, &pres);
        assert_eq!(payload, bytes(&case["proxy_to_client"]["pres_block_payload"]));
        let received = decode_responses(&client_params, &payload.into()).remove(0);
        assert_eq!(received.response, Ok(pres));
        assert_eq!(client.open_response(&forwarded.response).as_deref(), Ok(inner.as_slice()));
    }

    #[test]
    fn exchanges_are_those_of_the_reference_in_every_layer() {
        let vectors = vectors("proxy.json");
        assert_eq!(cases(&vectors["exchanges"], |case| run(&vectors, case)), 7);
    }

    #[test]
    fn a_layer_opens_only_with_its_own_keys_nonce_and_direction() {
        let (own, peer) = (SecretDhKey::generate(), SecretDhKey::generate());
        let id = CorrelationId(Bytes::from_static(b"correlation"));
        let layer = CommandBox::new(&own, &peer.public_key(), &id).expect("a layer");
        let sealed = layer.seal_command(b"payload").expect("fits");
        assert_eq!(layer.open_command(&sealed).as_deref(), Ok(b"payload".as_slice()));
        assert_eq!(layer.open_response(&sealed), Err(ForwardError::Crypto));
        let other = CommandBox::new(&own, &peer.public_key(), &CorrelationId::NONE).expect("a layer");
        assert_eq!(other.open_command(&sealed), Err(ForwardError::Crypto));
        assert_eq!(layer.seal_command(&[0; PADDED_PAYLOAD - 1]), Err(ForwardError::TooLarge));
        assert!(CommandBox::new(&own, &PublicDhKey([0; 32]), &id).is_err());
    }

    #[test]
    fn malformed_transmissions_are_told_from_undecipherable_ones() {
        let secret = SharedSecret::from_bytes([1; 32]);
        let layer = RelayBox::new(&secret, &CorrelationId::NONE);
        assert_eq!(layer.open_transmission(b"no box at all"), Err(ForwardError::Crypto));
        let malformed = secret.box_key().seal(&Nonce([0; 24]), b"\x05abc");
        assert_eq!(layer.open_transmission(&malformed), Err(ForwardError::Malformed));
        assert_eq!(ErrorType::from(ForwardError::Crypto), ErrorType::Crypto);
        assert_eq!(ErrorType::from(ForwardError::Malformed), ErrorType::Cmd(CommandError::Syntax));
    }

    proptest! {
        #[test]
        fn forwarded_transmissions_come_back(
            id in prop::collection::vec(any::<u8>(), 0..256), version: u16, key: [u8; 32],
            transmission in prop::collection::vec(any::<u8>(), 0..300), secret: [u8; 32],
        ) {
            let forwarded = ForwardedTransmission {
                correlation_id: CorrelationId(id.into()),
                version: Version(version),
                key: PublicDhKey(key),
                transmission: transmission.into(),
            };
            let layer = RelayBox::new(&SharedSecret::from_bytes(secret), &forwarded.correlation_id);
            prop_assert_eq!(layer.open_transmission(&layer.seal_transmission(&forwarded))?, forwarded.clone());
            let response =
                ForwardedResponse { correlation_id: forwarded.correlation_id, response: forwarded.transmission };
            prop_assert_eq!(layer.open_response(&layer.seal_response(&response))?, response);
        }
    }
}
