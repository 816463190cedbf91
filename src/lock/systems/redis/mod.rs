//! `redis`: one Redis server (5 or newer, for scripts that ask for the time).
//!
//! Each lock is a key that expires, with `owner|token` as its value. One script each asks, renews and releases, so
//! that every step is atomic at the server and several keys are all or nothing.
//!
//! Who is refused is remembered at the server, in the order in which they came. A release reserves the lock for the
//! first of them that is still listening, and tells it; nobody else gets it for a moment, so that a replica cannot win
//! again and again because it is nearer or quicker. Each process has one subscription for all its waiters.
//!
//! It promises that tokens rise, also after the server has lost its memory, as long as its clock is not set back; and
//! a fair order between replicas while locks are released. A lease that runs out is announced to nobody: who asks
//! first gets it, and a waiter asks by itself at least every 250 ms. It does not promise that a lock survives the loss
//! of the server's memory. The counter has no expiry and must not be evicted: the server's policy must be `noeviction`
//! or `volatile-*`; another one is told in the log.
//!
//! All keys share one hash tag, so that they stay together in a cluster, and one prefix, which nothing else uses.
//! (Redis documentation, "Distributed locks"; the counter for fencing and the reservation are ours.)

pub(super) mod link;
mod subscription;

use std::{
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use redis::{Script, ScriptInvocation};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use self::link::{Link, Repeat};
use crate::lock::{
    claim::{Claim, Grant, Token},
    error::LockError,
    guarantees::LockName,
    key::Key,
    system::{Answer, LockSystem, ReleaseMode, Released, Renewal, ServerId},
    wakeups::Wakeups,
};

/// Stands before the name of each lock.
const LOCK_PREFIX: &str = "{doublebook}:lock:";

/// Stands before the name of a lock where it is remembered who waits for it.
const WAITERS_PREFIX: &str = "{doublebook}:waiters:";

/// The counter of all locks.
const COUNTER: &str = "{doublebook}:token";

/// Where the server's random id is kept.
const SERVER: &str = "{doublebook}:server";

/// Stands before the random name of a process where it is told of its locks.
const CHANNEL_PREFIX: &str = "{doublebook}:process:";

/// How long the question for the server's id may take.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

static ASK: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(
        include_str!("hand_over.lua"),
        include_str!("ask.lua")
    ))
});
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("renew.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(
        include_str!("hand_over.lua"),
        include_str!("release.lua")
    ))
});
static SERVER_ID: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("server.lua")));

/// Grants locks at one Redis server.
#[derive(Debug)]
pub struct Redis {
    link: Link,
    /// Where this process is told of locks that are reserved for its waiters.
    channel: String,
    wakeups: Arc<Wakeups>,
    /// Started by the first waiter.
    subscription: OnceLock<AbortOnDropHandle<()>>,
}

impl Redis {
    /// Reads a URL such as `redis://:password@host:6379/0`. Connects to nothing yet: a server that is down is found
    /// out by the first request, and does not keep a program from starting.
    ///
    /// # Errors
    /// [`LockError::BadSetting`] when the URL cannot be read.
    pub fn open(url: &str) -> Result<Self, LockError> {
        Ok(Self {
            link: Link::open(url)?,
            channel: format!("{CHANNEL_PREFIX}{:016x}", rand::random::<u64>()),
            wakeups: Arc::default(),
            subscription: OnceLock::new(),
        })
    }
}

#[async_trait]
impl LockSystem for Redis {
    fn name(&self) -> LockName {
        LockName::Redis
    }

    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        let mut call = self.call(&ASK, claim);
        call.key(COUNTER)
            .arg(milliseconds(claim.ttl))
            .arg(u8::from(claim.waits));
        let answer = self.link.run(&call, claim.patience, Repeat::Once).await?;
        read_answer(claim, answer).ok_or_else(|| self.nonsense("ask"))
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError> {
        let mut call = RENEW.prepare_invoke();
        for key in &claim.keys {
            call.key(lock_key(key));
        }
        call.arg(claim.owner.to_string())
            .arg(milliseconds(claim.ttl));
        let kept: bool = self.link.run(&call, claim.patience, Repeat::Once).await?;
        Ok(if kept { Renewal::Kept } else { Renewal::Lost })
    }

    async fn release(&self, claim: &Claim, mode: ReleaseMode) -> Result<Released, LockError> {
        let mut call = self.call(&RELEASE, claim);
        call.arg(u8::from(mode == ReleaseMode::Blind));
        let freed: usize = self.link.run(&call, claim.patience, Repeat::Never).await?;
        Ok(if freed == claim.keys.count() {
            Released::Released
        } else {
            Released::NotTheOwner
        })
    }

    fn wakeups(&self) -> Option<&Wakeups> {
        if let Ok(runtime) = Handle::try_current() {
            self.subscription.get_or_init(|| {
                let (client, channel) = (self.link.client().clone(), self.channel.clone());
                let feed = subscription::feed(client, channel, self.wakeups.clone());
                AbortOnDropHandle::new(runtime.spawn(feed))
            });
        }
        Some(&self.wakeups)
    }

    /// Who is refused is remembered at the server, and a lock can be reserved for it there.
    fn queues(&self) -> bool {
        true
    }

    async fn server(&self, draw: &str) -> Result<Option<ServerId>, LockError> {
        let mut call = SERVER_ID.key(SERVER);
        call.arg(draw);
        let id = self.link.run(&call, SERVER_PATIENCE, Repeat::Once).await?;
        Ok(Some(ServerId {
            id,
            address: self.link.address(),
            kept_in: format!("the key {SERVER}"),
        }))
    }

    fn connections(&self) -> u64 {
        self.link.connections()
    }
}

impl Redis {
    /// What the scripts that begin with `hand_over.lua` are given first.
    fn call<'a>(&self, script: &'a Script, claim: &Claim) -> ScriptInvocation<'a> {
        let mut call = script.prepare_invoke();
        for key in &claim.keys {
            call.key(lock_key(key))
                .key(format!("{WAITERS_PREFIX}{key}"));
        }
        call.arg(claim.owner.to_string()).arg(&self.channel);
        call
    }

    fn nonsense(&self, script: &str) -> LockError {
        let address = self.link.address();
        LockError::unavailable(format!(
            "redis at {address}: the script {script:?} answered nonsense"
        ))
    }
}

/// The key of a lock at the server.
fn lock_key(key: &Key) -> String {
    format!("{LOCK_PREFIX}{key}")
}

/// Reads what `hand_over.lua` tells: the key of a lock at the server.
fn told(lock_key: &str) -> Option<Key> {
    Key::parse(lock_key.strip_prefix(LOCK_PREFIX)?).ok()
}

/// Rounded up, since Redis refuses 0.
fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Reads what `ask.lua` answers.
fn read_answer(claim: &Claim, answer: Vec<String>) -> Option<Answer> {
    let (word, rest) = answer.split_first()?;
    match (word.as_str(), rest) {
        ("granted", tokens) if tokens.len() == claim.keys.count() => {
            let tokens = tokens
                .iter()
                .map(|text| text.parse().ok().and_then(Token::new));
            let granted = claim.keys.iter().zip(tokens);
            let grant = granted
                .map(|(key, token)| Some((key.clone(), Some(token?))))
                .collect::<Option<Grant>>()?;
            Some(Answer::Granted(grant))
        }
        ("refused", [index, left]) => Some(Answer::Refused {
            key: claim.keys.iter().nth(index.parse().ok()?)?.clone(),
            // Negative for a key that somebody else made without an expiry.
            retry_in: left.parse().ok().map(Duration::from_millis),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{claim::Owner, many::Keys};

    #[test]
    fn answers_are_read() {
        let key = Key::parse("a").unwrap();
        let claim = Claim {
            owner: Owner::random(),
            keys: Keys::from(key.clone()),
            ttl: Duration::from_secs(1),
            alone: false,
            waits: false,
            patience: Duration::from_secs(1),
        };
        let read =
            |words: &[&str]| read_answer(&claim, words.iter().map(ToString::to_string).collect());

        let token = Token::new(57_000_000_000_001);
        let granted = Grant::from_iter([(key.clone(), token)]);
        assert_eq!(
            read(&["granted", "57000000000001"]),
            Some(Answer::Granted(granted))
        );
        let refused = |retry_in| {
            Some(Answer::Refused {
                key: key.clone(),
                retry_in,
            })
        };
        assert_eq!(
            read(&["refused", "0", "70"]),
            refused(Some(Duration::from_millis(70)))
        );
        assert_eq!(read(&["refused", "0", "-1"]), refused(None));
        for nonsense in [
            &["granted"][..],
            &["granted", "0"],
            &["refused", "1", "70"],
            &[],
        ] {
            assert_eq!(read(nonsense), None);
        }
    }
}
