//! Names of schemas.

use std::fmt;
use std::str::FromStr;

/// A schema's name: lower-case letters, digits and underscores, not starting with a digit, at most 63 bytes. The Haskell
/// server writes the name into its SQL without quotes: any other would be another name there, or no name.
///
/// So it can stand in SQL as it is. It is quoted nevertheless ([`Self::quoted`]), for names that are words of SQL.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SchemaName(String);

/// Not a name of a schema that this server uses.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "\"{0}\" cannot be the name of the schema: use lower-case letters, digits and _, not starting with a digit, at most 63"
)]
pub struct InvalidSchemaName(String);

/// PostgreSQL cuts longer names.
const MAX_BYTES: usize = 63;

impl SchemaName {
    /// As it stands in SQL.
    pub fn quoted(&self) -> String {
        format!("\"{}\"", self.0)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SchemaName {
    type Err = InvalidSchemaName;

    fn from_str(name: &str) -> Result<Self, InvalidSchemaName> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let starts_well = name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
        match starts_well && name.len() <= MAX_BYTES && name.bytes().all(allowed) {
            true => Ok(SchemaName(name.to_owned())),
            false => Err(InvalidSchemaName(name.to_owned())),
        }
    }
}

impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
