//! Inside the section: read, think, look once more, write, commit, leave.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::enter::lock_key;
use super::failpoint::Point;
use super::{Holds, Protection, Section, SectionError};
use crate::database::fence::{self, Refusal, RowId, Stamp, WriteError};
use crate::database::{CommitError, DatabaseError, Dialect, Row, Session, Transaction};
use crate::journal::StepKind;
use crate::lock::{Held, ReleaseOutcome};
use crate::room::{self, Fencing, Order, Room};

/// How long raising the epoch of a room may take, whose lock server lost its counter.
const HEAL_LIMIT: Duration = Duration::from_secs(5);

impl Section<'_> {
    /// The room as it was when the section was entered.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// The token of a row's lock.
    pub fn token(&self, row: &RowId) -> Option<i64> {
        let key = lock_key(&self.room, row).ok()?;
        self.leases()
            .iter()
            .find_map(|held| held.token(&key))
            .map(|token| token.get())
    }

    /// The version at which a row was read.
    pub fn version(&self, row: &RowId) -> i64 {
        self.read
            .iter()
            .find(|(read, ..)| read == row)
            .map_or(0, |(.., version)| *version)
    }

    /// The rows in the one order in which rows are touched.
    pub(super) fn sorted(&self) -> Vec<RowId> {
        let mut rows = self.given.clone();
        rows.sort();
        rows.dedup();
        rows
    }

    pub(super) fn leases(&self) -> &[Held] {
        match &self.holds {
            Holds::Leases(leases) => leases,
            _ => &[],
        }
    }

    /// Reads the rows and brings them in the order in which they were asked for. Under `from_first_read` the read is
    /// a claim; under `row` the rows were read when they were taken.
    pub async fn read(&mut self) -> Result<Vec<Row>, SectionError> {
        self.attempt.began_work();
        let mut found = match &mut self.holds {
            Holds::Rows(Some(open)) => std::mem::take(&mut open.seen),
            _ => self.read_or_claim().await?,
        };
        for (row, seen) in &found {
            let token = self.token(row);
            self.read.push((row.clone(), token, seen.int("version")?));
            self.attempt.tell(
                StepKind::Read,
                Some(row.to_string()),
                token,
                fence::describe(row.table, seen)?,
            );
        }
        self.attempt.reach(Point::AfterRead, self.leases()).await;
        found.sort_by_key(|(row, _)| self.given.iter().position(|given| given == row));
        Ok(found.into_iter().map(|(_, seen)| seen).collect())
    }

    async fn read_or_claim(&self) -> Result<Vec<(RowId, Row)>, SectionError> {
        if self.claims() {
            self.claim().await
        } else {
            self.read_plainly().await
        }
    }

    /// A holder without a token (`mutex`) claims too: it leaves its epoch, so that an attempt of an earlier one is
    /// refused. Rows taken `FOR UPDATE` need no claim.
    fn claims(&self) -> bool {
        self.room.switches.fencing == Fencing::FromFirstRead && !self.leases().is_empty()
    }

    async fn read_plainly(&self) -> Result<Vec<(RowId, Row)>, SectionError> {
        let mut session: Session = self.attempt.app.database.read(self.limit()).await?;
        let rows = self.sorted();
        let found = fence::read(&mut session, self.room.id, &rows).await;
        match found {
            Ok(found) => Ok(rows.into_iter().zip(found).collect()),
            Err(error) => Err(self.refused(error).await),
        }
    }

    async fn claim(&self) -> Result<Vec<(RowId, Row)>, SectionError> {
        let rows = self.sorted();
        match rows.as_slice() {
            [row] if self.attempt.app.database.dialect() == Dialect::Postgres => {
                self.claim_one(row).await
            }
            _ => self.claim_together(rows).await,
        }
    }

    /// One statement is a transaction by itself.
    async fn claim_one(&self, row: &RowId) -> Result<Vec<(RowId, Row)>, SectionError> {
        let database = &self.attempt.app.database;
        let mut session = database.write_alone(self.limit()).await?;
        match fence::claim(&mut session, self.room.id, row, self.stamp(row)).await {
            Ok(seen) => Ok(vec![(row.clone(), seen)]),
            Err(error) => {
                drop(session);
                Err(self.refused(error).await)
            }
        }
    }

    /// Claims all rows in one transaction, in order; one that refuses rolls all back.
    async fn claim_together(&self, rows: Vec<RowId>) -> Result<Vec<(RowId, Row)>, SectionError> {
        let mut transaction = self.attempt.app.database.begin(self.limit()).await?;
        let mut found = Vec::new();
        for row in rows {
            let stamp = self.stamp(&row);
            match fence::claim(&mut transaction, self.room.id, &row, stamp).await {
                Ok(seen) => found.push((row, seen)),
                Err(error) => {
                    transaction.rollback().await;
                    return Err(self.refused(error).await);
                }
            }
        }
        // A claim whose commit has no answer is not relied on: its write would ask for it.
        transaction.commit().await.map_err(DatabaseError::from)?;
        Ok(found)
    }

    fn stamp(&self, row: &RowId) -> Stamp {
        Stamp {
            epoch: self.room.epoch,
            token: self.token(row),
        }
    }

    /// The work between read and write.
    pub async fn think(&self) {
        let work = self.room.switches.think();
        if work.is_zero() {
            return;
        }
        let working = tokio::time::sleep(work);
        self.attempt
            .tell_losses_during(self.leases(), working)
            .await;
        self.attempt.tell(
            StepKind::Thought,
            None,
            None,
            format!("worked for {} ms", work.as_millis()),
        );
    }

    /// Looks at the lease, once. A pause may strike after it, and then only the protection helps.
    ///
    /// # Errors
    /// [`SectionError::LeaseLost`].
    pub fn last_look(&self) -> Result<Protection, SectionError> {
        if let Some(lost) = self.leases().iter().find(|held| held.check().is_err()) {
            let key = lost
                .keys()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            self.attempt
                .tell(StepKind::Rejected, Some(key), None, "the lease is over");
            return Err(SectionError::LeaseLost);
        }
        Ok(Protection::new(
            &self.room.switches,
            self.room.epoch,
            &self.read,
        ))
    }

    /// Begins the transaction that writes; under `row` it is open already.
    pub async fn begin_write(&mut self) -> Result<Transaction, SectionError> {
        self.attempt.reach(Point::BeforeWrite, self.leases()).await;
        if let Holds::Rows(open) = &mut self.holds
            && let Some(open) = open.take()
        {
            let mut transaction = open.transaction;
            let limit = self.limit();
            self.attempt
                .app
                .database
                .give(&mut transaction, limit)
                .await?;
            return Ok(transaction);
        }
        Ok(self.attempt.app.database.begin(self.limit()).await?)
    }

    /// Commits what was written, or rolls back and says why it was refused.
    ///
    /// # Errors
    /// [`SectionError::OutcomeUnknown`] when the commit was sent and not answered; then the lease is left to run out.
    pub async fn commit<T>(
        &mut self,
        transaction: Transaction,
        written: Result<T, WriteError>,
    ) -> Result<T, SectionError> {
        let value = match written {
            Ok(value) => value,
            Err(error) => {
                transaction.rollback().await;
                return Err(self.refused(error).await);
            }
        };
        for (row, token, version) in &self.read {
            self.attempt.tell(
                StepKind::Wrote,
                Some(row.to_string()),
                *token,
                format!("wrote over version {version}"),
            );
        }
        self.attempt.reach(Point::BeforeCommit, self.leases()).await;
        self.attempt.commit_sent.store(true, Ordering::SeqCst);
        self.committing = true;
        let committed = transaction.commit().await;
        self.committing = false;
        self.attempt.settled();
        match committed {
            Ok(()) => {}
            Err(CommitError::Refused(error)) => {
                self.attempt.commit_sent.store(false, Ordering::SeqCst);
                return Err(self.database_failed(error));
            }
            Err(CommitError::Unknown(error)) => {
                self.abandon();
                return Err(SectionError::OutcomeUnknown(error.to_string()));
            }
        }
        self.attempt
            .tell(StepKind::Committed, None, None, "committed");
        self.attempt.reach(Point::AfterCommit, self.leases()).await;
        Ok(value)
    }

    fn database_failed(&self, error: DatabaseError) -> SectionError {
        let deadlock = matches!(error, DatabaseError::Deadlock(_));
        let error = SectionError::from(error);
        // Rows are touched in one order: only a stranger can have been in the way.
        let again = deadlock && self.room.switches.order == Order::Sorted;
        if again { error.anew() } else { error }
    }

    /// What a refusal at a row means. If the lock server lost its counter, heals the room and begins anew.
    async fn refused(&self, error: WriteError) -> SectionError {
        let (row, refusal) = match error {
            WriteError::Database(error) => return self.database_failed(error),
            WriteError::Refused { row, refusal } => (row, refusal),
        };
        let mine = self.token(&row);
        let error = SectionError::refused(&row, refusal, mine);
        self.attempt.tell(
            StepKind::Rejected,
            Some(row.to_string()),
            mine,
            error.to_string(),
        );
        match (refusal, mine) {
            (Refusal::StaleToken { found }, Some(mine))
                if found >= mine && self.is_still_mine(&row).await =>
            {
                match self.heal().await {
                    Ok(()) => error.anew(),
                    Err(failed) => failed,
                }
            }
            _ => error,
        }
    }

    /// Asks the lock server, in a new request, whether the lock of a row is still ours.
    async fn is_still_mine(&self, row: &RowId) -> bool {
        let Ok(key) = lock_key(&self.room, row) else {
            return false;
        };
        match self
            .leases()
            .iter()
            .find(|held| held.keys().iter().any(|held| *held == key))
        {
            Some(held) => matches!(held.confirm().await, Ok(true)),
            None => false,
        }
    }

    /// The row has seen a higher token than the server that still confirms ours: it lost its counter. A new epoch
    /// makes its small numbers count again. It can only refuse, so it is safe.
    async fn heal(&self) -> Result<(), SectionError> {
        let lock = self.room.switches.lock;
        self.attempt.in_its_name(|| {
            tracing::warn!(%lock, "the lock server lost its counter: the room's epoch is raised");
        });
        let mut transaction = self.attempt.app.database.begin(HEAL_LIMIT).await?;
        room::store::raise_epoch_from(&mut transaction, &self.room.name, self.room.epoch).await?;
        transaction
            .commit()
            .await
            .map_err(|error| SectionError::DatabaseUnavailable(error.to_string()))
    }

    fn limit(&self) -> Duration {
        self.attempt.database_limit(self.room.switches.wait())
    }

    /// Leaves: the locks are given back in the background, the answer does not wait for it. A section that is
    /// dropped leaves just so.
    pub fn leave(self) {}

    /// Takes the leases out, and counts those that are over already.
    fn leases_taken_out(&mut self) -> Vec<Held> {
        let Holds::Leases(leases) = std::mem::replace(&mut self.holds, Holds::Nothing) else {
            return Vec::new();
        };
        for _ in leases.iter().filter(|held| held.check().is_err()) {
            let lock = self.room.switches.lock;
            self.attempt.app.metrics.lease_lost(lock);
        }
        leases
    }

    /// Keeps the leases until they run out: what was committed under them is not known.
    fn abandon(&mut self) {
        for held in self.leases_taken_out() {
            let left = self
                .attempt
                .app
                .leases_left
                .count(self.room.name.as_str(), 1);
            if let Some(deadline) = held.deadline() {
                self.attempt.app.runtime.spawn(async move {
                    tokio::time::sleep_until(deadline).await;
                    drop(left);
                });
            }
            held.abandon();
        }
    }

    fn give_back(&mut self) {
        for held in self.leases_taken_out().into_iter().rev() {
            let key = held
                .keys()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            self.attempt
                .tell(StepKind::Released, Some(key), None, "gives the lock back");
            let left = self
                .attempt
                .app
                .leases_left
                .count(self.room.name.as_str(), 1);
            let deadline = held.deadline();
            let releasing = held.release();
            let released = self.attempt.app.runtime.spawn(async move {
                if let (ReleaseOutcome::Unknown, Some(deadline)) = (releasing.await, deadline) {
                    tokio::time::sleep_until(deadline).await;
                }
                drop(left);
            });
            self.attempt.releases(released);
        }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        if self.committing {
            self.abandon();
        } else {
            self.give_back();
        }
    }
}
