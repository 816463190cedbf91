//! The room of a side: made, read and removed over HTTP.

use std::collections::HashSet;
use std::time::Duration;

use hyper::Method;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::client::{Answer, Client, Failure};
use super::history::{Booking, Kept, Transfer, Wallet};
use super::settings::{Side, Target};

/// What each wallet is opened with.
const OPENING: &str = "1000.00";

/// The most columns that a row can have.
const MOST_COLUMNS: u32 = 1000;

/// The most seats that a room can have.
pub const MOST_SEATS: u32 = 100 * MOST_COLUMNS;

/// How long is waited for attempts whose end is not known, and for a room to be removed.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an answer about a room is waited for: it may have a hundred thousand seats.
pub const ROOM_LIMIT: Duration = Duration::from_secs(30);

/// What of the patience is left for the look itself.
const LAST_LOOK: Duration = Duration::from_secs(3);

/// How long an answer is waited for that is small whatever the room holds: its audit.
const AUDIT_LIMIT: Duration = Duration::from_secs(3);

/// How often a replica is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How long nothing must have changed until a room is taken to be at rest: longer than an attempt works, besides its
/// thinking.
const QUIET: Duration = Duration::from_millis(500);

/// A room that was made for a side.
#[derive(Debug)]
pub struct Room {
    name: String,
    /// Numbers of the targets that are asked, in turn.
    pub targets: Vec<usize>,
    /// The names of its seats, row by row.
    pub seats: Vec<String>,
    /// The names of its wallets.
    pub wallets: Vec<String>,
    /// Its switches, as the replica says.
    pub switches: Map<String, Value>,
    epoch: i64,
}

/// What a room must have.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// How many seats, at least.
    pub seats: u32,
    /// How many wallets.
    pub wallets: u32,
}

/// Why a room could not be made, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// The replica does not take it: a setting is wrong.
    #[error("{0}")]
    NotTaken(String),
    /// No whole answer.
    #[error("{}: {failure}", target.authority())]
    Failed {
        /// Whose.
        target: Target,
        /// Why, and whether any target may have read the request.
        failure: Failure,
    },
    /// An answer that cannot be used.
    #[error("{0}")]
    Unexpected(String),
    /// Somebody else changed it during the run.
    #[error("{0}")]
    Disturbed(String),
}

#[derive(Deserialize)]
struct Shown {
    epoch: i64,
    switches: Map<String, Value>,
    seats: Vec<ShownSeat>,
    wallets: Vec<ShownWallet>,
    audit: Audit,
}

#[derive(Deserialize)]
struct ShownSeat {
    seat: String,
}

#[derive(Deserialize)]
struct ShownWallet {
    wallet: String,
    balance: Decimal,
}

#[derive(Deserialize)]
struct Audit {
    attempts: u64,
    leases_left: Option<u64>,
}

/// A problem document, as far as it is looked at.
#[derive(Debug, Default, Deserialize)]
pub struct Problem {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    detail: String,
}

impl Room {
    /// Makes a room and sets its switches.
    ///
    /// # Errors
    /// [`RoomError`]; then the room is not there.
    pub async fn make(
        client: &Client,
        name: String,
        targets: Vec<usize>,
        side: &Side,
        size: Size,
        think: Option<Duration>,
    ) -> Result<Self, RoomError> {
        let mut room = Self {
            name,
            targets,
            seats: Vec::new(),
            wallets: Vec::new(),
            switches: Map::new(),
            epoch: 0,
        };
        let made = room.fill(client, side, size, think).await;
        if let Err(error) = made {
            let unread =
                matches!(&error, RoomError::Failed { failure, .. } if !failure.may_be_read);
            // Unless nobody read the first request, it may be there all the same.
            if !(unread && room.seats.is_empty()) {
                let _ = room.remove(client).await;
            }
            return Err(error);
        }
        Ok(room)
    }

    async fn fill(
        &mut self,
        client: &Client,
        side: &Side,
        size: Size,
        think: Option<Duration>,
    ) -> Result<(), RoomError> {
        let columns = size.seats.clamp(1, MOST_COLUMNS);
        let wallets = (1..=size.wallets.max(2))
            .map(|number| json!({"name": format!("w{number}"), "balance": OPENING}));
        let layout = json!({
            "rows": size.seats.div_ceil(columns).max(1), "columns": columns,
            "wallets": wallets.collect::<Vec<_>>(),
        });
        let made: Shown = self.ask(client, Method::PUT, "", Some(layout)).await?;
        self.seats = made.seats.into_iter().map(|seat| seat.seat).collect();
        self.wallets = made
            .wallets
            .into_iter()
            .map(|wallet| wallet.wallet)
            .collect();
        self.switches = made.switches;
        self.epoch = made.epoch;

        let wishes = wishes(&self.switches, side, think);
        if !wishes.is_empty() {
            let wishes = Some(wishes.into());
            let made: Shown = self.ask(client, Method::PATCH, "/switches", wishes).await?;
            self.switches = made.switches;
            self.epoch = made.epoch;
        }
        Ok(())
    }

    /// What the room holds, once nothing changes any more, after these attempts were acknowledged.
    ///
    /// # Errors
    /// [`RoomError`], when no target of the side tells it, when it goes on changing, or when somebody else has changed it.
    pub async fn kept(
        &self,
        client: &Client,
        acknowledged: &HashSet<Uuid>,
    ) -> Result<Kept, RoomError> {
        let deadline = Instant::now() + PATIENCE;
        self.is_at_rest(client, deadline).await?;
        loop {
            if let Some((epoch, kept)) = self.look(client).await? {
                self.is_undisturbed(epoch, &kept, acknowledged)?;
                return Ok(kept);
            }
            if Instant::now() >= deadline {
                return Err(RoomError::Unexpected("it went on changing".to_owned()));
            }
        }
    }

    /// Balances and records of one moment, and the epoch; none when records were added between the requests. The
    /// balances come with how many there were, and only a reset removes records.
    async fn look(&self, client: &Client) -> Result<Option<(i64, Kept)>, RoomError> {
        let shown: Shown = self.ask(client, Method::GET, "", None).await?;
        if shown.switches != self.switches {
            return Err(RoomError::switched());
        }
        let opening: Decimal = OPENING.parse().unwrap_or_default();
        let wallets = shown.wallets.into_iter().map(|shown| Wallet {
            wallet: shown.wallet,
            opening,
            balance: shown.balance,
        });
        let kept = Kept {
            bookings: self
                .records(client, "/bookings", |record: &Booking| record.seq)
                .await?,
            transfers: self
                .records(client, "/transfers", |record: &Transfer| record.seq)
                .await?,
            wallets: wallets.collect(),
        };
        let records = kept.bookings.len() + kept.transfers.len();
        Ok((records as u64 == shown.audit.attempts).then_some((shown.epoch, kept)))
    }

    /// Whether this is still the room that was made. A new epoch alone is no sign of a stranger: replicas raise it, too,
    /// when a lock server has lost its counter.
    fn is_undisturbed(
        &self,
        epoch: i64,
        kept: &Kept,
        acknowledged: &HashSet<Uuid>,
    ) -> Result<(), RoomError> {
        if epoch == self.epoch {
            return Ok(());
        }
        let own = self.lock();
        if kept.records().any(|(_, lock)| lock != own) {
            return Err(RoomError::switched());
        }
        let there: HashSet<Uuid> = kept.records().map(|(attempt, _)| attempt).collect();
        let missing = acknowledged.difference(&there).count();
        if missing > 0 {
            return Err(RoomError::Disturbed(format!(
                "somebody reset it during the run: its epoch rose, and {missing} of {} that were acknowledged are gone",
                acknowledged.len()
            )));
        }
        Ok(())
    }

    /// The lock system that its attempts ask; none with locking off.
    fn lock(&self) -> Option<&str> {
        let is_on = self.switches.get("locking") == Some(&Value::Bool(true));
        is_on.then(|| self.switches.get("lock")?.as_str()).flatten()
    }

    /// Waits until no lease of an ended attempt is left and the records stay as many as they are: an attempt whose
    /// client has given up goes on. At the deadline it goes on all the same, and what happens later is not seen.
    async fn is_at_rest(&self, client: &Client, deadline: Instant) -> Result<(), RoomError> {
        let think = self
            .switches
            .get("think_ms")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        let quiet = QUIET + Duration::from_millis(think);
        let (mut last, mut since) = (None, Instant::now());
        let mut is_told = false;
        loop {
            let audit = self.answer(client, Method::GET, "/audit", None, AUDIT_LIMIT);
            let audit: Audit = read(&audit.await?)?;
            if audit.leases_left.is_none() && !is_told {
                is_told = true;
                let room = &self.name;
                tracing::info!(
                    room,
                    "a replica does not say whether leases are left; it has {PATIENCE:?} to"
                );
            }
            if audit.leases_left != Some(0) || last != Some(audit.attempts) {
                since = Instant::now();
            }
            if since.elapsed() >= quiet || Instant::now() + ASK_AGAIN >= deadline - LAST_LOOK {
                return Ok(());
            }
            last = Some(audit.attempts);
            sleep(ASK_AGAIN).await;
        }
    }

    async fn records<R: DeserializeOwned>(
        &self,
        client: &Client,
        path: &str,
        seq: fn(&R) -> i64,
    ) -> Result<Vec<R>, RoomError> {
        let mut all: Vec<R> = Vec::new();
        loop {
            let after = all.last().map_or(0, seq);
            let path = format!("{path}?after={after}");
            let page: Vec<R> = self.ask(client, Method::GET, &path, None).await?;
            let Some(last) = page.last() else {
                return Ok(all);
            };
            if seq(last) <= after {
                let why = format!("{path} answers what was asked for before");
                return Err(RoomError::Unexpected(why));
            }
            all.extend(page);
        }
    }

    /// Removes the room. One that is not there is removed.
    ///
    /// # Errors
    /// The last [`RoomError`], when no target did it in time.
    pub async fn remove(&self, client: &Client) -> Result<(), RoomError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let removed = self.try_to_remove(client).await;
            if removed.is_ok() || Instant::now() >= deadline {
                return removed;
            }
            sleep(ASK_AGAIN).await;
        }
    }

    async fn try_to_remove(&self, client: &Client) -> Result<(), RoomError> {
        let answer = self
            .answer(client, Method::DELETE, "", None, ROOM_LIMIT)
            .await?;
        match answer.status {
            204 | 404 => Ok(()),
            _ => Err(RoomError::of(&answer)),
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        client: &Client,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<T, RoomError> {
        read(&self.answer(client, method, path, body, ROOM_LIMIT).await?)
    }

    /// From the first target that gives a whole answer: one may be dead by now. Those that were silent when they were
    /// asked last are asked last.
    async fn answer(
        &self,
        client: &Client,
        method: Method,
        path: &str,
        body: Option<Value>,
        limit: Duration,
    ) -> Result<Answer, RoomError> {
        let path = self.path(path);
        let body = body.map(|body| body.to_string().into_bytes());
        let mut targets = self.targets.clone();
        targets.sort_by_key(|target| client.is_silent(*target));
        let (mut last, mut may_be_read) = (None, false);
        for target in targets {
            match client
                .send(target, method.clone(), &path, body.clone(), limit)
                .await
            {
                Ok(answer) => return Ok(answer),
                Err(failure) => {
                    may_be_read |= failure.may_be_read;
                    last = client.target(target).zip(Some(failure.kind));
                }
            }
        }
        Err(last.map_or_else(
            || RoomError::Unexpected("no target".to_owned()),
            |(target, kind)| RoomError::Failed {
                target: target.clone(),
                failure: Failure { kind, may_be_read },
            },
        ))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A path below the room.
    pub fn path(&self, below: &str) -> String {
        format!("/api/rooms/{}{below}", self.name)
    }
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, RoomError> {
    if !(200..300).contains(&answer.status) {
        return Err(RoomError::of(answer));
    }
    serde_json::from_slice(&answer.body)
        .map_err(|error| RoomError::Unexpected(format!("an answer that cannot be read: {error}")))
}

impl RoomError {
    fn switched() -> Self {
        Self::Disturbed("somebody changed its switches during the run".to_owned())
    }

    fn of(answer: &Answer) -> Self {
        let problem = Problem::of(answer);
        let told = format!("{} {}", answer.status, problem.detail);
        match answer.status {
            400..500 => Self::NotTaken(told),
            _ => Self::Unexpected(told),
        }
    }
}

impl Problem {
    /// What an answer tells, empty where it tells nothing.
    pub fn of(answer: &Answer) -> Self {
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Whether it says that nothing was done.
    pub fn did_not_happen(&self) -> bool {
        self.outcome == "did_not_happen"
    }

    /// The last word of its type.
    pub fn word(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }
}

/// The switches that are to be set. Which of them are truth values or numbers is seen from the room as it is; what is
/// unknown there is sent as it was typed, and the replica says what is wrong with it.
fn wishes(there: &Map<String, Value>, side: &Side, think: Option<Duration>) -> Map<String, Value> {
    let mut wishes = Map::new();
    if let Some(think) = think {
        let milliseconds = u64::try_from(think.as_millis()).unwrap_or(u64::MAX);
        wishes.insert("think_ms".to_owned(), milliseconds.into());
    }
    for (name, text) in &side.switches {
        let value = match there.get(name) {
            Some(Value::Bool(_)) if matches!(text.as_str(), "on" | "true") => true.into(),
            Some(Value::Bool(_)) if matches!(text.as_str(), "off" | "false") => false.into(),
            Some(Value::Number(_)) => text
                .parse::<u64>()
                .map_or_else(|_| text.as_str().into(), Value::from),
            _ => text.as_str().into(),
        };
        wishes.insert(name.clone(), value);
    }
    wishes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_sent_in_the_form_that_it_has_in_the_room() {
        let there = json!({"locking": true, "fencing": "from_first_read", "ttl_ms": 2000});
        let side: Side = "locking=off fencing=off ttl_ms=100 loking=off"
            .parse()
            .unwrap();
        let there = there.as_object().unwrap();
        assert_eq!(
            Value::from(wishes(there, &side, Some(Duration::from_millis(20)))),
            json!({"locking": false, "fencing": "off", "ttl_ms": 100, "loking": "off", "think_ms": 20})
        );
    }
}
