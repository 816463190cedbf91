//! The words that the layers and a lock system exchange: who asks for what, and what was granted.
//!
//! Nothing here has a clock or a connection.

use std::{fmt, time::Duration};

use serde::Serialize;
use tokio::time::Instant;

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

/// What was granted: each key with its token, in the order of the keys. Two grants of the same are equal, whenever
/// their leases count from.
#[derive(Debug, Clone)]
pub struct Grant {
    tokens: Vec<(Key, Option<Token>)>,
    since: Option<Instant>,
}

impl Grant {
    /// A grant of a system that has no tokens.
    pub fn without_tokens(keys: &Keys) -> Self {
        keys.iter().map(|key| (key.clone(), None)).collect()
    }

    /// The token of a key; `None` when the key was not asked for or the system has no tokens.
    pub fn token(&self, key: &Key) -> Option<Token> {
        let (_, token) = self.tokens.iter().find(|(granted, _)| granted == key)?;
        *token
    }

    /// Each key with its token, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, Option<Token>)> {
        self.tokens.iter().map(|(key, token)| (key, *token))
    }

    /// The same grant under a lease that counts from then. For a system whose leases are older than the request that
    /// was granted, because many claims share one: without it, a lease counts from when the request was sent.
    pub fn counting_from(mut self, since: Instant) -> Self {
        self.since = Some(since);
        self
    }

    /// From when its lease counts, for a request that was sent then.
    pub(super) fn since(&self, sent: Instant) -> Instant {
        self.since.map_or(sent, |since| since.min(sent))
    }
}

impl PartialEq for Grant {
    fn eq(&self, other: &Self) -> bool {
        self.tokens == other.tokens
    }
}

impl Eq for Grant {}

impl FromIterator<(Key, Option<Token>)> for Grant {
    fn from_iter<I: IntoIterator<Item = (Key, Option<Token>)>>(granted: I) -> Self {
        Self {
            tokens: granted.into_iter().collect(),
            since: None,
        }
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

    /// One that said it counts from later than the request would end later than the lock system thinks.
    #[test]
    fn a_lease_never_counts_from_later_than_the_request() {
        let grant = Grant::without_tokens(&Key::parse("a").unwrap().into());
        let sent = Instant::now();
        let (earlier, later) = (sent - Duration::from_secs(1), sent + Duration::from_secs(1));
        assert_eq!(grant.since(sent), sent);
        assert_eq!(grant.clone().counting_from(earlier).since(sent), earlier);
        assert_eq!(grant.clone().counting_from(later).since(sent), sent);
        assert_eq!(grant.clone().counting_from(earlier), grant);
    }

    #[test]
    fn zero_is_no_token() {
        assert_eq!(Token::new(0), None);
        assert!(Token::new(1) < Token::new(2));
    }
}
