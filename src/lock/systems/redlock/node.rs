//! One node: the connection to it, and the scripts that run on it.
//!
//! It promises that each request ends within its patience, with an answer or with the reason why there is none that
//! counts. A request that failed may have been carried out.

use std::{
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::{Script, ScriptInvocation};
use tokio::sync::Semaphore;

use super::quorum::Vote;
use crate::lock::{
    claim::{Claim, Owner, Token},
    error::LockError,
    key::Key,
    many::Keys,
    system::ReleaseMode,
    systems::redis::link::{Link, Repeat},
};

/// Stands before the name of each lock.
const LOCK_PREFIX: &str = "{doublebook}:redlock:lock:";

/// The mark of a node that may vote: which Redlock it belongs to.
const MARK: &str = "{doublebook}:redlock:member";

/// What a node must not forget: the counters, the longest lease, the name of the Redlock.
pub(super) const RECORD: &str = "{doublebook}:redlock:record";

/// When a node without a mark was found, and what it is called until it has one.
const FOUND: &str = "{doublebook}:redlock:found";

macro_rules! script {
    ($($file:literal),+) => {
        LazyLock::new(|| Script::new(concat!($(include_str!($file)),+)))
    };
}

static ASK: LazyLock<Script> = script!("node.lua", "ask.lua");
static WRITE: LazyLock<Script> = script!("node.lua", "write.lua");
static RENEW: LazyLock<Script> = script!("node.lua", "renew.lua");
static RELEASE: LazyLock<Script> = script!("node.lua", "release.lua");
static NAME: LazyLock<Script> = script!("node.lua", "name.lua");
static RECORD_OF: LazyLock<Script> = script!("node.lua", "record.lua");
static LOOK: LazyLock<Script> = script!("look.lua");
static ADMIT: LazyLock<Script> = script!("admit.lua");

/// One Redis among the nodes of a Redlock.
#[derive(Debug)]
pub(super) struct Node {
    link: Link,
    /// The last request was not answered.
    silent: AtomicBool,
    /// It said that it does not vote.
    keeps_out: AtomicBool,
    withdrawals: Semaphore,
}

/// Which Redlock a node belongs to.
pub(super) type Mark = Arc<str>;

/// A claim as the nodes see it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) mark: Mark,
    pub(super) owner: Owner,
    /// Which ask of the owner: a later one has a higher number.
    pub(super) ask: u64,
    pub(super) ttl: Duration,
    pub(super) keys: Keys,
    pub(super) patience: Patience,
}

/// How long is waited for nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For their answers, while nothing is certain.
    pub(super) answer: Duration,
    /// How long a request may be under way: longer, so that a slow node gets the time to be connected to.
    pub(super) request: Duration,
}

/// What keeps a claim from being granted at a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blocked {
    /// The first key that is another's.
    pub(super) key: Key,
    /// How long the other's lease lasts unless it is renewed.
    pub(super) rest: Option<Duration>,
}

/// Why a node does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Absence {
    /// It did not answer, or with an error.
    Silent(String),
    /// It has lost its memory, or is new.
    Empty,
    /// It belongs to another Redlock.
    Foreign,
}

/// What a node remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// It may vote.
    Member {
        mark: Mark,
        /// The longest lease that it knows of.
        longest: Duration,
    },
    /// It has no mark.
    Empty {
        /// What it is called until it has one.
        name: String,
        /// For how long this is known.
        since: Duration,
    },
}

/// Which part of the lease is waited for the nodes' answers: both phases take half of it at most. One nearby answers in a
/// millisecond; only when a majority hangs does anybody wait as long as this.
const ANSWERS_PER_LEASE: u32 = 4;

/// The longest that is waited for them.
const LONGEST_ANSWER: Duration = Duration::from_secs(2);

/// How long a request may be under way at least.
const REQUEST: Duration = Duration::from_millis(250);

/// How many withdrawals may be under way at a node. When one that hangs has as many before it, leases run out there by
/// themselves.
const MOST_WITHDRAWALS: usize = 256;

/// How long a node may take to tell what it remembers, also when it must be connected to first.
const MEMORY: Duration = Duration::from_secs(1);

impl Patience {
    /// For a claim with this lease, which may take so long at most.
    pub(super) fn of(ttl: Duration, most: Duration) -> Self {
        let answer = (ttl / ANSWERS_PER_LEASE).min(LONGEST_ANSWER).min(most);
        Self {
            answer,
            request: answer.max(REQUEST),
        }
    }

    /// For what has nothing to do with a lease.
    fn for_memory() -> Self {
        Self {
            answer: MEMORY,
            request: MEMORY,
        }
    }
}

impl Request {
    pub(super) fn new(mark: Mark, claim: &Claim, ask: u64) -> Self {
        Self {
            mark,
            owner: claim.owner,
            ask,
            ttl: claim.ttl,
            keys: claim.keys.clone(),
            patience: Patience::of(claim.ttl, claim.patience),
        }
    }

    /// A script about the locks of this claim.
    fn call(&self, script: &'static Script) -> ScriptInvocation<'static> {
        let mut call = about(script, &self.mark);
        for key in &self.keys {
            call.key(lock_key(key));
        }
        call.arg(self.owner.to_string());
        call
    }
}

/// A script about this Redlock.
fn about(script: &'static Script, mark: &Mark) -> ScriptInvocation<'static> {
    let mut call = script.key(MARK);
    call.key(RECORD).arg(&**mark);
    call
}

fn lock_key(key: &Key) -> String {
    format!("{LOCK_PREFIX}{key}")
}

/// Rounded up, since Redis refuses 0.
fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}

impl Node {
    pub(super) fn open(url: &str) -> Result<Self, LockError> {
        Ok(Self {
            link: Link::open(url)?,
            silent: AtomicBool::new(false),
            keeps_out: AtomicBool::new(false),
            withdrawals: Semaphore::new(MOST_WITHDRAWALS),
        })
    }

    pub(super) fn address(&self) -> String {
        self.link.address()
    }

    pub(super) fn connections(&self) -> u64 {
        self.link.connections()
    }

    /// Whether its last answer did not come.
    pub(super) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// Whether it said that it does not vote.
    pub(super) fn keeps_out(&self) -> bool {
        self.keeps_out.load(Ordering::Relaxed)
    }

    /// First phase.
    pub(super) async fn ask(&self, request: &Request) -> Result<(Vote, Option<Blocked>), Absence> {
        let mut call = request.call(&ASK);
        call.arg(request.ask).arg(milliseconds(request.ttl));
        let answer = self.run(&call, request.patience, Repeat::Once).await?;
        read_ask(&answer, &request.keys).ok_or_else(|| self.nonsense("ask"))
    }

    /// Second phase.
    pub(super) async fn write(&self, request: &Request, token: Token) -> Result<Vote, Absence> {
        let mut call = request.call(&WRITE);
        call.arg(token.get());
        let answer = self.run(&call, request.patience, Repeat::Once).await?;
        read_write(&answer, token).ok_or_else(|| self.nonsense("write"))
    }

    /// Whether all keys are still the owner's, and last for another lease time.
    pub(super) async fn renew(&self, request: &Request) -> Result<bool, Absence> {
        let mut call = request.call(&RENEW);
        call.arg(milliseconds(request.ttl));
        let answer = self.run(&call, request.patience, Repeat::Once).await?;
        read_yes_or_no(&answer).ok_or_else(|| self.nonsense("renew"))
    }

    /// Frees what the owner has, and says whether that was all keys.
    pub(super) async fn release(
        &self,
        request: &Request,
        mode: ReleaseMode,
    ) -> Result<bool, Absence> {
        let mut call = request.call(&RELEASE);
        call.arg("").arg(u8::from(mode == ReleaseMode::Blind));
        let answer = self.run(&call, request.patience, Repeat::Never).await?;
        read_yes_or_no(&answer).ok_or_else(|| self.nonsense("release"))
    }

    /// Frees what this ask and earlier ones of its owner got, but not what a later one has, if the node answers and not
    /// too many wait for that.
    pub(super) async fn withdraw(&self, request: &Request) {
        let Ok(_place) = self.withdrawals.try_acquire() else {
            return;
        };
        let mut call = request.call(&RELEASE);
        call.arg(request.ask).arg(0);
        if let Err(absence) = self.run(&call, request.patience, Repeat::Once).await {
            tracing::debug!(node = self.address(), %absence, "a withdrawal was not answered");
        }
    }

    /// The name of the Redlock that the node has; `None` if it has none.
    pub(super) async fn name(&self, mark: &Mark) -> Result<Option<String>, Absence> {
        self.run_name(mark, &["look"]).await
    }

    /// Takes the name of the Redlock away from the node.
    pub(super) async fn forget_name(&self, mark: &Mark) -> Result<(), Absence> {
        self.run_name(mark, &["forget"]).await?;
        Ok(())
    }

    /// Gives the node a name if it still has the one that was seen there, and says which it has now.
    pub(super) async fn set_name(
        &self,
        mark: &Mark,
        name: &str,
        seen: Option<&str>,
    ) -> Result<Option<String>, Absence> {
        let words = ["take", name, seen.unwrap_or_default()];
        self.run_name(mark, &words).await
    }

    async fn run_name(&self, mark: &Mark, words: &[&str]) -> Result<Option<String>, Absence> {
        let mut call = about(&NAME, mark);
        for word in words {
            call.arg(*word);
        }
        let answer = self
            .run(&call, Patience::for_memory(), Repeat::Once)
            .await?;
        match answer.as_slice() {
            [_, name] => Ok(Some(name.clone()).filter(|name| !name.is_empty())),
            _ => Err(self.nonsense("name")),
        }
    }

    /// All that the node must not forget: field, value, …
    pub(super) async fn record(&self, mark: &Mark) -> Result<Vec<String>, Absence> {
        let call = about(&RECORD_OF, mark);
        let mut answer = self
            .run(&call, Patience::for_memory(), Repeat::Once)
            .await?;
        Ok(answer.split_off(1))
    }

    /// What the node remembers. If it is empty and has no name yet, it is called `name`.
    pub(super) async fn look(&self, name: &str) -> Result<Look, Absence> {
        let mut call = LOOK.key(MARK);
        call.key(RECORD).key(FOUND).arg(name);
        let answer = self
            .run_anyway(&call, Patience::for_memory(), Repeat::Once)
            .await?;
        read_look(&answer).ok_or_else(|| self.nonsense("look"))
    }

    /// Lets an empty node vote that is still the one that was called `name`.
    pub(super) async fn admit(
        &self,
        mark: &Mark,
        name: &str,
        records: &[String],
    ) -> Result<bool, Absence> {
        let mut call = ADMIT.key(MARK);
        call.key(RECORD).key(FOUND).arg(&**mark).arg(name);
        for one in records {
            call.arg(one.as_str());
        }
        let answer = self
            .run_anyway(&call, Patience::for_memory(), Repeat::Once)
            .await?;
        read_yes_or_no(&answer).ok_or_else(|| self.nonsense("admit"))
    }

    /// Runs a script of a node that votes.
    async fn run(
        &self,
        call: &ScriptInvocation<'_>,
        patience: Patience,
        repeat: Repeat,
    ) -> Result<Vec<String>, Absence> {
        let answer = self.run_anyway(call, patience, repeat).await?;
        let absence = match answer.first().map(String::as_str) {
            Some("empty") => Absence::Empty,
            Some("foreign") => Absence::Foreign,
            Some(_) => {
                self.keeps_out.store(false, Ordering::Relaxed);
                return Ok(answer);
            }
            None => self.nonsense("any"),
        };
        if !self.keeps_out.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                node = self.address(),
                "a Redlock node does not vote: {absence}"
            );
        }
        Err(absence)
    }

    /// Runs a script, also on a node that does not vote.
    async fn run_anyway(
        &self,
        call: &ScriptInvocation<'_>,
        patience: Patience,
        repeat: Repeat,
    ) -> Result<Vec<String>, Absence> {
        let answer = self.link.run(call, patience.request, repeat).await;
        self.silent.store(answer.is_err(), Ordering::Relaxed);
        answer.map_err(|error| match error {
            LockError::Unavailable { reason } => Absence::Silent(reason),
            other => Absence::Silent(other.to_string()),
        })
    }

    fn nonsense(&self, script: &str) -> Absence {
        let address = self.address();
        Absence::Silent(format!(
            "redis at {address}: the script {script:?} answered nonsense"
        ))
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(reason) => f.write_str(reason),
            Self::Empty => f.write_str("it has lost its memory or is new"),
            Self::Foreign => f.write_str("it belongs to another Redlock"),
        }
    }
}

fn read_token(text: &str) -> Option<Token> {
    text.parse().ok().and_then(Token::new)
}

fn read_milliseconds(text: &str) -> Option<Duration> {
    // Negative for a key that somebody else made without an expiry.
    text.parse().ok().map(Duration::from_millis)
}

fn words(answer: &[String]) -> Vec<&str> {
    answer.iter().map(String::as_str).collect()
}

fn read_ask(answer: &[String], keys: &Keys) -> Option<(Vote, Option<Blocked>)> {
    match words(answer).as_slice() {
        ["granted", floor, ""] => {
            let (floor, token) = (read_token(floor)?, None);
            Some((Vote::Granted { floor, token }, None))
        }
        ["granted", floor, token] => {
            let (floor, token) = (read_token(floor)?, Some(read_token(token)?));
            Some((Vote::Granted { floor, token }, None))
        }
        ["taken", floor, key, rest] => {
            let floor = read_token(floor)?;
            let blocked = Blocked {
                key: keys.iter().nth(key.parse().ok()?)?.clone(),
                rest: read_milliseconds(rest),
            };
            Some((Vote::Taken { floor }, Some(blocked)))
        }
        _ => None,
    }
}

fn read_write(answer: &[String], token: Token) -> Option<Vote> {
    match words(answer).as_slice() {
        ["written"] => Some(Vote::Written(token)),
        ["lapsed"] => Some(Vote::Lapsed),
        ["outrun", floor] => {
            let floor = read_token(floor).filter(|&floor| floor > token)?;
            Some(Vote::Outrun { floor })
        }
        _ => None,
    }
}

fn read_yes_or_no(answer: &[String]) -> Option<bool> {
    match words(answer).as_slice() {
        ["yes"] => Some(true),
        ["no"] => Some(false),
        _ => None,
    }
}

fn read_look(answer: &[String]) -> Option<Look> {
    match words(answer).as_slice() {
        ["member", mark, longest] => Some(Look::Member {
            mark: Mark::from(*mark),
            longest: read_milliseconds(longest)?,
        }),
        ["empty", name, since] => Some(Look::Empty {
            name: (*name).to_owned(),
            since: read_milliseconds(since)?,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    fn token(number: i64) -> Token {
        Token::new(number).unwrap()
    }

    #[test]
    fn the_answers_of_the_first_phase_are_read() {
        let [a, b] = ["a", "b"].map(|text| Key::parse(text).unwrap());
        let keys = Keys::new([a, b.clone()]).unwrap();
        let read = |words: &[&str]| read_ask(&answer(words), &keys);
        let floor = token(57_000_000_000_001);
        let granted = |token| Some((Vote::Granted { floor, token }, None));
        assert_eq!(read(&["granted", "57000000000001", ""]), granted(None));
        assert_eq!(
            read(&["granted", "57000000000001", "7"]),
            granted(Some(token(7)))
        );
        let taken = |rest| {
            let key = b.clone();
            Some((Vote::Taken { floor: token(5) }, Some(Blocked { key, rest })))
        };
        let rest = Some(Duration::from_millis(70));
        assert_eq!(read(&["taken", "5", "1", "70"]), taken(rest));
        assert_eq!(read(&["taken", "5", "1", "-1"]), taken(None));
        for nonsense in [
            &["granted", "0", ""][..],
            &["granted", "1", "0"],
            &["taken", "1"],
            &["taken", "5", "2", "70"],
            &[],
        ] {
            assert_eq!(read(nonsense), None);
        }
    }

    #[test]
    fn the_answers_of_the_second_phase_are_read() {
        let read = |words: &[&str]| read_write(&answer(words), token(7));
        assert_eq!(read(&["written"]), Some(Vote::Written(token(7))));
        assert_eq!(read(&["lapsed"]), Some(Vote::Lapsed));
        assert_eq!(
            read(&["outrun", "8"]),
            Some(Vote::Outrun { floor: token(8) })
        );
        assert_eq!(read(&["outrun", "7"]), None);
    }

    #[test]
    fn the_patience_is_far_below_the_lease() {
        let of = |ttl| Patience::of(Duration::from_millis(ttl), Duration::from_secs(5));
        let answers = [60_000, 2_000, 300, 100].map(|ttl| of(ttl).answer.as_millis());
        assert_eq!(answers, [2_000, 500, 75, 25]);
        let short = Patience::of(Duration::from_secs(60), Duration::from_millis(20));
        assert_eq!(short.answer, Duration::from_millis(20));
    }
}
