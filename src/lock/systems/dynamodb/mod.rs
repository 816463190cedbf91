//! `dynamodb`: a table in DynamoDB, one item for each lock.
//!
//! One conditional update asks: the item is free, or its version has stood still for its whole lease. One renews, one
//! releases. An item holds no time and is never deleted, so that no two machines have to agree on the time and its
//! token only rises.
//!
//! It promises that a lease is taken from a holder only after somebody watched it stand still for all of its length,
//! measured from after a read, while the holder measures from before its write; only clocks that run at different
//! speeds could make both hold it, and the margin of the layers covers that. (awslabs/amazon-dynamodb-lock-client.)
//! It does not promise a quick recovery: whoever comes to the lock of a dead holder first watches it for a whole lease.
//! Nobody is woken, and there is no order between processes. A table that is restored from a backup repeats tokens.
//!
//! Several keys are asked for one after the other, and given back when one is refused. A transaction
//! (`TransactWriteItems`) would be one request, but tells no token, so that reading them is a second one; it costs
//! twice as much; and while it is carried out, the renewals and releases of the holders of these keys fail. The price:
//! for a moment, an ask that fails may hold a key that somebody else asks for. It seldom does, since the keys that
//! others hold are asked for first.

mod connections;
mod granted;
mod item;
mod link;
mod table;
mod watch;

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use self::{
    granted::Granted,
    item::Asked,
    link::{Access, Limit, Link},
    table::Table,
    watch::Watch,
};
use crate::lock::{
    claim::{Claim, Owner, Token},
    error::LockError,
    guarantees::LockName,
    key::Key,
    system::{Answer, LockSystem, ReleaseMode, Released, Renewal, ServerId},
};

/// The table that holds all locks.
const TABLE: &str = "doublebook_locks";

/// How many asks of this process are under way at once. The next ones stand in line here, since a burst would open as many
/// connections and delay the renewals of everybody. Renewals and releases do not stand in line.
const MOST_ASKS: usize = 32;

/// How long the question for the table's id may take.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// Grants locks in one table of DynamoDB.
#[derive(Debug)]
pub struct DynamoDb {
    table: Table,
    /// What others hold.
    watch: Watch,
    /// What this process holds.
    granted: Granted,
    asks: Semaphore,
}

/// Why one key was not granted.
struct Refusal {
    retry_in: Option<Duration>,
}

impl DynamoDb {
    /// Reads a URL such as `https://dynamodb.eu-central-1.amazonaws.com`. Region and credentials are those of the usual
    /// `AWS_*` settings. Connects to nothing yet: a server that is down is found out by the first request, and does not
    /// keep a program from starting.
    ///
    /// # Errors
    /// [`LockError::BadSetting`] when the URL cannot be read.
    pub fn open(endpoint: &str) -> Result<Self, LockError> {
        Self::with_access(endpoint, Access::Environment)
    }

    /// The same for a DynamoDB Local, which believes any region and any credentials.
    ///
    /// # Errors
    /// [`LockError::BadSetting`] when the URL cannot be read.
    pub fn local(endpoint: &str) -> Result<Self, LockError> {
        Self::with_access(endpoint, Access::Local)
    }

    /// Keeps the locks in a table of this name. Locks in different tables know nothing of each other.
    pub fn in_table(mut self, name: impl Into<String>) -> Self {
        self.table.name = name.into();
        self
    }

    /// How many keys are remembered: those that others were seen holding, and the grants of this process.
    pub fn remembered(&self) -> (usize, usize) {
        (self.watch.len(), self.granted.len())
    }

    fn with_access(endpoint: &str, access: Access) -> Result<Self, LockError> {
        Ok(Self {
            table: Table::new(Link::open(endpoint, access)?, TABLE),
            watch: Watch::new(Instant::now()),
            granted: Granted::default(),
            asks: Semaphore::new(MOST_ASKS),
        })
    }

    /// Asks for one key.
    async fn ask_for(
        &self,
        key: &Key,
        claim: &Claim,
        limit: Limit,
    ) -> Result<Result<Token, Refusal>, LockError> {
        let over = self.watch.is_over(key, Instant::now());
        let asked = item::ask(&self.table, key, claim, over, limit).await?;
        if let Asked::Held(standing) = asked {
            let retry_in = Some(self.watch.note(key, standing, Instant::now()));
            return Ok(Err(Refusal { retry_in }));
        }
        self.watch.forget(key);
        match asked {
            Asked::Granted(token) => Ok(Ok(token)),
            // What it has already it keeps, for a new lease.
            Asked::Mine(token) if item::renew(&self.table, key, claim, limit).await? => {
                Ok(Ok(token))
            }
            Asked::Mine(_) | Asked::Held(_) => Ok(Err(Refusal { retry_in: None })),
        }
    }

    /// Frees these keys and says how many of them. Goes on after a failure, and then reports it.
    async fn free(
        &self,
        keys: impl IntoIterator<Item = &Key>,
        owner: Option<Owner>,
        limit: Limit,
    ) -> Result<usize, LockError> {
        let frees = keys
            .into_iter()
            .map(|key| item::free(&self.table, key, owner, limit));
        let freed: Result<Vec<bool>, _> = join_all(frees).await.into_iter().collect();
        Ok(freed?.into_iter().filter(|&freed| freed).count())
    }
}

#[async_trait]
impl LockSystem for DynamoDb {
    fn name(&self) -> LockName {
        LockName::Dynamodb
    }

    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        let limit = Limit::new(claim.patience);
        let turn = timeout_at(limit.until, self.asks.acquire()).await;
        let _turn = turn.map_err(|_| LockError::TooManyWaiters { limit: MOST_ASKS })?;
        let sent = Instant::now();
        let mut tokens: HashMap<&Key, Token> = HashMap::new();
        for key in self.watch.held_first(&claim.keys) {
            match self.ask_for(key, claim, limit).await? {
                Ok(token) => tokens.insert(key, token),
                Err(Refusal { retry_in }) => {
                    self.free(tokens.into_keys(), Some(claim.owner), limit)
                        .await?;
                    let key = key.clone();
                    return Ok(Answer::Refused { key, retry_in });
                }
            };
        }
        self.granted.note(claim.owner, sent + claim.ttl);
        let granted = claim.keys.iter();
        Ok(Answer::Granted(
            granted
                .map(|key| (key.clone(), tokens.get(key).copied()))
                .collect(),
        ))
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError> {
        let sent = Instant::now();
        if !self.granted.stands(claim.owner, sent) {
            return Ok(Renewal::Lost);
        }
        let limit = Limit::new(claim.patience);
        let renewals = claim
            .keys
            .iter()
            .map(|key| item::renew(&self.table, key, claim, limit));
        let renewed = join_all(renewals).await;
        // One that is lost is lost, also when nothing is known of another.
        if renewed.contains(&Ok(false)) {
            self.granted.forget(claim.owner);
            return Ok(Renewal::Lost);
        }
        renewed.into_iter().collect::<Result<Vec<bool>, _>>()?;
        self.granted.extend(claim.owner, sent + claim.ttl);
        Ok(Renewal::Kept)
    }

    async fn release(&self, claim: &Claim, mode: ReleaseMode) -> Result<Released, LockError> {
        self.granted.forget(claim.owner);
        let owner = match mode {
            ReleaseMode::OwnerChecked => Some(claim.owner),
            ReleaseMode::Blind => None,
        };
        let limit = Limit::new(claim.patience);
        let freed = self.free(&claim.keys, owner, limit).await?;
        Ok(if freed == claim.keys.count() {
            Released::Released
        } else {
            Released::NotTheOwner
        })
    }

    async fn server(&self, draw: &str) -> Result<Option<ServerId>, LockError> {
        let limit = Limit::new(SERVER_PATIENCE);
        Ok(Some(ServerId {
            id: item::server(&self.table, draw, limit).await?,
            address: format!("{}, table {}", self.table.link.address(), self.table.name),
            kept_in: format!("the item {}", item::SERVER),
        }))
    }

    fn connections(&self) -> u64 {
        // A table that had to be made has lost its id, if it had one.
        self.table.link.changes() + self.table.made()
    }
}
