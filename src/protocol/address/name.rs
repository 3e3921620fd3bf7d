//! Names that `RSLV` resolves.

use crate::protocol::encoding::{Decode, DecodeError, Reader};

/// A name to resolve, such as `alice.simplex`: lower case, at least two labels of ASCII letters, digits and single
/// hyphens inside.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct NameDomain(String);

impl NameDomain {
    /// Longest name in bytes, as in the domain name system.
    pub const MAX_LENGTH: usize = 253;
    /// Longest label in bytes.
    pub const MAX_LABEL_LENGTH: usize = 63;

    /// The name in `text`, in lower case.
    pub fn parse(text: &str) -> Result<Self, DecodeError> {
        let labels = text.split('.').filter(|label| is_label(label)).count();
        let valid = text.len() <= Self::MAX_LENGTH && labels >= 2 && labels == text.split('.').count();
        if valid { Ok(NameDomain(text.to_ascii_lowercase())) } else { Err(DecodeError) }
    }

    /// The name in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_label(label: &str) -> bool {
    label.len() <= NameDomain::MAX_LABEL_LENGTH
        && label.split('-').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Reads up to the next white space or the end.
impl Decode for NameDomain {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let rest = reader.rest();
        let length = rest.iter().position(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).unwrap_or(rest.len());
        let name = std::str::from_utf8(reader.slice(length)?).map_err(|_| DecodeError)?;
        NameDomain::parse(name)
    }
}
