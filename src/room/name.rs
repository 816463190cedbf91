//! The name of a room, as it stands in addresses.

use std::fmt;
use std::str::FromStr;

/// The room that exists from the start and cannot be deleted.
pub const MAIN: &str = "main";

/// 1 to 40 of `a-z`, `0-9` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RoomName(String);

impl RoomName {
    /// The room `main`.
    pub fn main() -> Self {
        Self(MAIN.to_owned())
    }

    /// Whether this is the room that always exists.
    pub fn is_main(&self) -> bool {
        self.0 == MAIN
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Not a room's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 40 of a-z, 0-9 and -")]
pub struct NotARoomName;

impl FromStr for RoomName {
    type Err = NotARoomName;

    fn from_str(text: &str) -> Result<Self, NotARoomName> {
        let fits = (1..=40).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotARoomName)
        }
    }
}

impl fmt::Display for RoomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
