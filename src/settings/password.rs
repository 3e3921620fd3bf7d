//! Passwords: wiped when dropped, compared in constant time, never shown.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// What [`Password::new`] accepts, for messages.
pub const ALLOWED_PASSWORD: &str = "printable ASCII characters without spaces, `@`, `:` and `/`, at most 255";

/// The basic authentication of SMP: 1 to 255 printable ASCII characters without space, `@`, `:` and `/`, so that it fits
/// into a server's address and into a short string.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Password(String);

impl Password {
    /// A password, or `None` if `text` is not allowed to be one.
    pub fn new(text: &str) -> Option<Self> {
        let allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '@' | ':' | '/');
        let fits = (1..=255).contains(&text.len()) && text.chars().all(allowed);
        fits.then(|| Password(text.to_owned()))
    }

    /// Whether `presented` is this password; the time taken tells nothing but whether the lengths are equal.
    pub fn matches(&self, presented: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(presented).into()
    }

    /// The password itself: only for the server's address that the operator is shown, and for the INI file.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_have_only_characters_that_fit_into_an_address() {
        assert!(Password::new("p#w;d=\\'\"%[]~").is_some());
        for refused in ["", "a b", "a:b", "a@b", "a/b", "p\u{e4}ss", "tab\t", &"x".repeat(256)] {
            assert!(Password::new(refused).is_none(), "{refused:?}");
        }
    }

    #[test]
    fn passwords_are_compared_and_not_shown() {
        let password = Password::new("secret").unwrap();
        assert!(password.matches(b"secret"));
        assert!(!password.matches(b"secreT") && !password.matches(b"secret1") && !password.matches(b""));
        assert!(!format!("{password:?}").contains("secret"));
    }
}
