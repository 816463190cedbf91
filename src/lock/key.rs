//! The name of what is locked.
//!
//! A [`Key`] is parsed once and then known to fit every lock system. It says nothing about what the name means.

use std::{fmt, str::FromStr, sync::Arc};

/// The longest key in bytes. etcd and DynamoDB take more; a ZooKeeper path and an index entry should stay short.
pub const LONGEST_KEY: usize = 512;

/// A name that can be locked: 1 to [`LONGEST_KEY`] bytes of UTF-8 without control characters. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

/// Why a text is no [`Key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// The text is empty.
    #[error("a lock key must not be empty")]
    Empty,
    /// The text is longer than [`LONGEST_KEY`].
    #[error("a lock key has at most {LONGEST_KEY} bytes, not {bytes}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// The text holds a control character, which would blur logs and paths.
    #[error("a lock key must not hold control characters")]
    ControlCharacter,
}

impl Key {
    /// Parses a text.
    ///
    /// # Errors
    /// [`BadKey`] names the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        if text.is_empty() {
            return Err(BadKey::Empty);
        }
        if text.len() > LONGEST_KEY {
            return Err(BadKey::TooLong { bytes: text.len() });
        }
        if text.chars().any(char::is_control) {
            return Err(BadKey::ControlCharacter);
        }
        Ok(Self(text.into()))
    }

    /// The text that was parsed.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Key {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        Self::parse(text)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_1_to_512_bytes_without_control_characters() {
        assert_eq!(Key::parse("seat:A1").unwrap().as_str(), "seat:A1");
        assert!(Key::parse(&"é".repeat(256)).is_ok());
        assert_eq!(Key::parse(""), Err(BadKey::Empty));
        assert_eq!(
            Key::parse(&"x".repeat(513)),
            Err(BadKey::TooLong { bytes: 513 })
        );
        assert_eq!(Key::parse("a\nb"), Err(BadKey::ControlCharacter));
    }
}
