//! Entering: the room's switches, then all locks within one `wait_ms`, then one more look at the epoch.

use std::time::{Duration, Instant};

use super::failpoint::Point;
use super::{Attempt, Holds, OpenRows, Section, SectionError};
use crate::database::fence::{self, RowId, WriteError};
use crate::database::{DatabaseError, Dialect, Row, Transaction};
use crate::journal::StepKind;
use crate::lock::{Held, Key, Keys, LockError, LockService, ReleaseMode, Wish};
use crate::room::{self, Order, Release, Room, Switches};

/// How long loading the room may take: its `wait_ms` is not known yet.
const LOAD_LIMIT: Duration = Duration::from_secs(5);

/// The least time that a try for a row lock is given, also with `wait_ms` 0: what a connection takes.
const SHORTEST_TRY: Duration = Duration::from_millis(100);

impl<'a> Section<'a> {
    /// Enters the section of the given rows: all their locks are held, or nothing is.
    ///
    /// # Errors
    /// Whatever keeps it from entering. [`SectionError::BeginAnew`] when the room's epoch grew meanwhile.
    pub async fn enter(attempt: &'a Attempt, given: Vec<RowId>) -> Result<Self, SectionError> {
        let room = load(attempt, &given).await?;
        attempt.enters(&room);
        let mut section = Self {
            attempt,
            room,
            given,
            holds: Holds::Nothing,
            read: Vec::new(),
            committing: false,
        };
        if section.room.switches.locks_rows() {
            section.take_rows().await?;
        } else if section.room.switches.locking {
            section.take_leases().await?;
        }
        section.look_at_the_epoch().await?;
        Ok(section)
    }

    /// Leases: all at once and sorted; or one by one as given, thinking in between, which can deadlock.
    async fn take_leases(&mut self) -> Result<(), SectionError> {
        let service = self
            .attempt
            .app
            .locks
            .of(&self.room, &self.attempt.app.database)
            .await?;
        let asks: Vec<Vec<RowId>> = match self.room.switches.order {
            Order::Sorted => vec![self.sorted()],
            Order::AsGiven => self.given.iter().map(|row| vec![row.clone()]).collect(),
        };
        let last = asks.len() - 1;
        let granted = granted(service.system().lease_time(self.room.switches.ttl()));
        self.holds = Holds::Leases(Vec::new());
        for (index, rows) in asks.into_iter().enumerate() {
            if index > 0 {
                self.think().await;
            }
            let held = self.acquire(service, &rows).await?;
            if index == last {
                self.attempt.holds_all();
            }
            for (key, token) in held.tokens().iter() {
                self.attempt.tell_granted(
                    key.to_string(),
                    token.map(|token| token.get()),
                    held.deadline().map(tokio::time::Instant::into_std),
                    granted.clone(),
                );
            }
            if let Holds::Leases(leases) = &mut self.holds {
                leases.push(held);
            }
            self.attempt.reach(Point::AfterGrant, self.leases()).await;
        }
        self.same_server()
    }

    async fn acquire(&self, service: &LockService, rows: &[RowId]) -> Result<Held, SectionError> {
        let wish = wish(self.attempt, &self.room, rows)?;
        let names = names(rows);
        self.attempt.tell(
            StepKind::Asked,
            Some(names.clone()),
            None,
            format!("asks {}", self.room.switches.lock),
        );
        let since = Instant::now();
        let acquired = tokio::select! {
            biased;
            () = self.attempt.app.shutdown.soft() => return Err(SectionError::ShuttingDown),
            acquired = service.acquire(wish) => acquired,
        };
        self.attempt.waited(since);
        acquired.map_err(|error| self.not_acquired(error, names))
    }

    fn not_acquired(&self, error: LockError, key: String) -> SectionError {
        match error {
            LockError::Timeout { .. } => self.timed_out(key),
            // The grant was over before it arrived.
            LockError::Lost(_) => SectionError::LeaseLost,
            LockError::Cancelled => SectionError::ShuttingDown,
            LockError::BadSetting { .. } => SectionError::Internal(error.to_string()),
            LockError::TooManyWaiters { limit } => SectionError::TooManyAttempts(limit),
            LockError::Unavailable { .. } => SectionError::LockUnavailable(error.to_string()),
        }
    }

    fn timed_out(&self, key: String) -> SectionError {
        SectionError::LockTimeout {
            key,
            waited_ms: self.attempt.total_wait().as_millis(),
        }
    }

    /// A connection made anew since the server was compared may lead to another server.
    fn same_server(&self) -> Result<(), SectionError> {
        if self.attempt.app.locks.is_compared(self.room.switches.lock) {
            return Ok(());
        }
        Err(SectionError::LockUnavailable(
            "the connection to the lock server was made anew".to_owned(),
        )
        .anew())
    }

    /// Rows: the locks are in the business transaction, which stays open from here on.
    async fn take_rows(&mut self) -> Result<(), SectionError> {
        let mut transaction = self.begin_rows().await?;
        let one_lock_for_all = transaction.dialect() == Dialect::Sqlite;
        if one_lock_for_all {
            self.attempt.holds_all();
            self.attempt.tell(
                StepKind::Granted,
                None,
                None,
                "granted the whole file, until commit",
            );
            self.attempt.reach(Point::AfterGrant, &[]).await;
        }
        let rows = match self.room.switches.order {
            Order::Sorted => self.sorted(),
            Order::AsGiven => self.given.clone(),
        };
        let last = rows.len() - 1;
        let mut found = Vec::with_capacity(rows.len());
        for (index, row) in rows.into_iter().enumerate() {
            if index > 0 && self.room.switches.order == Order::AsGiven {
                self.think().await;
            }
            let seen = self.take_row(&mut transaction, &row).await?;
            if !one_lock_for_all {
                if index == last {
                    self.attempt.holds_all();
                }
                self.attempt.tell(
                    StepKind::Granted,
                    Some(row.to_string()),
                    None,
                    "granted the row, until commit",
                );
                self.attempt.reach(Point::AfterGrant, &[]).await;
            }
            found.push((row, seen));
        }
        let limit = self.attempt.database_limit(self.room.switches.wait());
        self.attempt
            .app
            .database
            .give(&mut transaction, limit)
            .await?;
        self.holds = Holds::Rows(Some(Box::new(OpenRows {
            transaction,
            seen: found,
        })));
        Ok(())
    }

    async fn begin_rows(&self) -> Result<Transaction, SectionError> {
        let limit = self
            .attempt
            .left_of(self.room.switches.wait())
            .max(SHORTEST_TRY);
        let names = names(&self.given);
        self.attempt.tell(
            StepKind::Asked,
            Some(names.clone()),
            None,
            "asks for the rows",
        );
        let since = Instant::now();
        let begun = tokio::select! {
            biased;
            () = self.attempt.app.shutdown.soft() => return Err(SectionError::ShuttingDown),
            begun = self.attempt.app.database.begin_rows(limit) => begun,
        };
        self.attempt.waited(since);
        begun.map_err(|error| self.row_not_taken(error, names))
    }

    async fn take_row(
        &self,
        transaction: &mut Transaction,
        row: &RowId,
    ) -> Result<Row, SectionError> {
        let left = self.attempt.left_of(self.room.switches.wait());
        self.attempt
            .app
            .database
            .give(transaction, left.max(SHORTEST_TRY))
            .await?;
        let since = Instant::now();
        let taken = tokio::select! {
            biased;
            () = self.attempt.app.shutdown.soft() => return Err(SectionError::ShuttingDown),
            taken = fence::lock(transaction, self.room.id, row, left.is_zero()) => taken,
        };
        self.attempt.waited(since);
        taken.map_err(|error| match error {
            WriteError::Refused { row, .. } => SectionError::NoSuchRow(row),
            WriteError::Database(error) => self.row_not_taken(error, row.to_string()),
        })
    }

    /// A deadlock between attempts that lock in one order comes from somebody else, a reset perhaps: try again.
    fn row_not_taken(&self, error: DatabaseError, key: String) -> SectionError {
        match error {
            DatabaseError::Busy(_) => self.timed_out(key),
            DatabaseError::Deadlock(_) if self.room.switches.order == Order::Sorted => {
                SectionError::from(error).anew()
            }
            error => error.into(),
        }
    }

    /// Between loading the switches and getting the locks they may have changed; then these may be the wrong locks.
    async fn look_at_the_epoch(&mut self) -> Result<(), SectionError> {
        let now = match &mut self.holds {
            Holds::Nothing => return Ok(()),
            Holds::Rows(Some(open)) => {
                room::store::epoch(&mut open.transaction, self.room.id).await?
            }
            _ => {
                let limit = self.attempt.database_limit(self.room.switches.wait());
                let mut session = self.attempt.app.database.read(limit).await?;
                room::store::epoch(&mut session, self.room.id).await?
            }
        };
        match now {
            None => Err(SectionError::NotFound(format!("room {}", self.room.name))),
            Some(now) if now > self.room.epoch => Err(SectionError::SwitchesChanged.anew()),
            Some(_) => Ok(()),
        }
    }
}

async fn load(attempt: &Attempt, given: &[RowId]) -> Result<Room, SectionError> {
    let mut session = attempt.app.database.read(LOAD_LIMIT).await?;
    let Some((room, there)) = room::store::load(&mut session, &attempt.room, given).await? else {
        return Err(SectionError::NotFound(format!("room {}", attempt.room)));
    };
    match given.iter().zip(there).find(|(_, there)| !there) {
        Some((missing, _)) => Err(SectionError::NoSuchRow(missing.clone())),
        None => Ok(room),
    }
}

fn wish(attempt: &Attempt, room: &Room, rows: &[RowId]) -> Result<Wish, SectionError> {
    let internal = |error: &dyn std::fmt::Display| SectionError::Internal(error.to_string());
    let keys = rows
        .iter()
        .map(|row| lock_key(room, row))
        .collect::<Result<Vec<_>, _>>()?;
    let Switches {
        renew,
        waiting,
        release,
        ..
    } = room.switches;
    Ok(Wish {
        keys: Keys::new(keys).map_err(|error| internal(&error))?,
        ttl: room.switches.ttl(),
        renew,
        may_freeze: attempt.may_freeze(),
        wait: attempt.left_of(room.switches.wait()),
        waiting: match waiting {
            room::Waiting::Notify => crate::lock::Waiting::Notify,
            room::Waiting::Backoff => crate::lock::Waiting::Backoff,
        },
        release: match release {
            Release::OwnerChecked => ReleaseMode::OwnerChecked,
            Release::Blind if room.switches.lock.guarantees().blind_release_applies => {
                ReleaseMode::Blind
            }
            Release::Blind => ReleaseMode::OwnerChecked,
        },
        trips: attempt.trips.clone(),
    })
}

/// The key of a row's lock. A room's name holds no slash, and a row's name comes last, so no two rows share a key.
pub(super) fn lock_key(room: &Room, row: &RowId) -> Result<Key, SectionError> {
    Key::parse(&format!("{}/{row}", room.name))
        .map_err(|error| SectionError::Internal(error.to_string()))
}

/// A system may raise the time that it is asked for, have one of its own, or none.
fn granted(lease: Option<Duration>) -> String {
    lease.map_or_else(
        || "granted until it is given back".to_owned(),
        |time| format!("granted for {} ms", time.as_millis()),
    )
}

fn names(rows: &[RowId]) -> String {
    rows.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_told_with_the_time_that_the_system_gives() {
        assert_eq!(granted(Some(Duration::from_secs(4))), "granted for 4000 ms");
        assert_eq!(granted(None), "granted until it is given back");
    }
}
