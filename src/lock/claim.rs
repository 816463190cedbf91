//! The words that the layers and a lock system exchange: who asks for what, and what was granted.
//!
//! Nothing here has a clock or a connection.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::{key::Key, many::Keys};

/// Who asks: 128 random bits, drawn anew for each acquisition. Never a process, a host or a task, since each of
/// these can ask twice, and then one acquisition could free the lock of another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(u128);

impl Owner {
    /// Draws a new owner.
    pub fn random() -> Self {
        Self(rand::random())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({self})")
    }
}

/// A fencing token: a number above 0 that is larger for each new grant of a key. Tokens of different lock
/// systems cannot be compared. (Kleppmann, "How to do distributed locking", 2016.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Token(i64);

impl Token {
    /// The token of this number; `None` unless it is above 0, which stands for "no token" in a row.
    pub fn new(number: i64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// The number, as the data stores it.
    pub fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One request to a lock system.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The acquisition that asks.
    pub owner: Owner,
    /// What it wants: all of it or nothing.
    pub keys: Keys,
    /// How long a grant lasts unrenewed, already raised to what the system can do.
    pub ttl: Duration,
    /// Whether its lease must end by itself when nobody renews it, whatever else this process keeps alive. A system
    /// where one session keeps the leases of a whole process gives such a claim a session of its own.
    pub alone: bool,
    /// Whether its owner waits after a refusal and listens to [`Wakeups`](super::Wakeups). A system that remembers who
    /// waits, and could reserve a lock for it, remembers only such a one.
    pub waits: bool,
    /// How long this one request may take. A system answers "unavailable" rather than later.
    pub patience: Duration,
}

impl Claim {
    /// How long the layers wait for the answer: a little longer than the system should need to say that there is
    /// none. Only the system can drop a connection that hangs, so it must not be cut off before it does.
    pub(super) fn overtime(&self) -> Duration {
        self.patience * 5 / 4
    }
}

/// What was granted: each key with its token, in the order of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant(Vec<(Key, Option<Token>)>);

impl Grant {
    /// A grant of a system that has no tokens.
    pub fn without_tokens(keys: &Keys) -> Self {
        keys.iter().map(|key| (key.clone(), None)).collect()
    }

    /// The token of a key; `None` when the key was not asked for or the system has no tokens.
    pub fn token(&self, key: &Key) -> Option<Token> {
        let (_, token) = self.0.iter().find(|(granted, _)| granted == key)?;
        *token
    }

    /// Each key with its token, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, Option<Token>)> {
        self.0.iter().map(|(key, token)| (key, *token))
    }
}

impl FromIterator<(Key, Option<Token>)> for Grant {
    fn from_iter<I: IntoIterator<Item = (Key, Option<Token>)>>(granted: I) -> Self {
        Self(granted.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_32_hex_digits_and_never_the_same() {
        let owner = Owner::random();
        assert_eq!(owner.to_string().len(), 32);
        assert_ne!(owner, Owner::random());
    }

    #[test]
    fn zero_is_no_token() {
        assert_eq!(Token::new(0), None);
        assert!(Token::new(1) < Token::new(2));
    }
}
