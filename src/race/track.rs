//! The race itself: who asks whom and when, and what is said after.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::contenders::Contender;
use super::{LastRace, Race, RaceError, RaceResult, RacedAttempt, store};
use crate::app::App;
use crate::database::{DatabaseError, REQUEST_LIMIT};
use crate::journal::Record;
use crate::name::Name;
use crate::peers::{self, Replica};
use crate::room::{self, RoomName};
use crate::section::SectionError;

/// The buyers of `crowd`.
const CROWD: usize = 50;

/// How long the audit waits for the race's own releases.
const RELEASES_LIMIT: Duration = Duration::from_secs(1);

/// How long a holder is waited for at its gate: it reaches it as soon as it has its lock.
const HOLDER_LIMIT: Duration = Duration::from_secs(70);

/// How long a replica is asked for what it remembers of an attempt.
const RECORD_LIMIT: Duration = Duration::from_secs(3);

/// The pause between two such questions. The whole crowd of a race may ask them.
const RECORD_PAUSE: Duration = Duration::from_millis(300);

/// How often a condition on other replicas is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Where a race is run.
pub(super) struct Track<'a> {
    app: &'a App,
    name: &'a RoomName,
    /// The replicas that answered when the race began, this one among them.
    replicas: Vec<Replica>,
    /// The others of them. Nobody else is asked anything.
    others: Vec<Replica>,
    /// Those that did not answer.
    absent: Vec<Replica>,
}

impl<'a> Track<'a> {
    pub(super) fn new(
        app: &'a App,
        name: &'a RoomName,
        replicas: Vec<Replica>,
        absent: Vec<Replica>,
    ) -> Result<Self, RaceError> {
        if replicas.is_empty() {
            let needs = "this race needs a replica that answers".to_owned();
            return Err(RaceError::Needs(needs));
        }
        let others = replicas
            .iter()
            .filter(|replica| replica.name != app.me.name)
            .cloned()
            .collect();
        Ok(Self {
            app,
            name,
            replicas,
            others,
            absent,
        })
    }

    /// Whether a race is under way in this room on another replica. Two that begin at the same moment both give way.
    pub(super) async fn is_taken(&self) -> bool {
        peers::race_under_way(self.app, &self.others, self.name.as_str()).await
    }

    /// Runs the race to its end. `seats` are those of `crowd`.
    pub(super) async fn run(
        &self,
        race: Race,
        seats: &[String],
    ) -> Result<RaceResult, SectionError> {
        let attempts = match race {
            Race::OneSeat => {
                self.at_once(["Ana", "Ben"].map(|who| Contender::buyer(who, "A1")))
                    .await
            }
            Race::LostUpdate => {
                self.at_once(["bob", "carol"].map(|to| Contender::giver("alice", to, "80.00")))
                    .await
            }
            Race::Crossing => {
                let crossing = [("alice", "bob"), ("bob", "alice")];
                self.at_once(crossing.map(|(from, to)| Contender::giver(from, to, "10.00")))
                    .await
            }
            Race::Crowd => self.each(crowd(seats)).await,
            Race::PausedHolder => self.paused_holder().await?,
        };
        let leases_left = self.released().await;
        self.finish(race, attempts, leases_left).await
    }

    /// Sends all at once, each to the next replica in turn.
    async fn at_once<const N: usize>(&self, contenders: [Contender; N]) -> Vec<RacedAttempt> {
        self.each(contenders.into_iter().zip(0..).collect()).await
    }

    /// Sends all at once, each to the replica of its number, counted round and round.
    async fn each(&self, contenders: Vec<(Contender, usize)>) -> Vec<RacedAttempt> {
        let mut racing = Vec::with_capacity(contenders.len());
        for (contender, number) in contenders {
            racing.push(self.send(contender, number));
        }
        join_all(racing).await
    }

    fn send(&self, contender: Contender, index: usize) -> impl Future<Output = RacedAttempt> {
        contender.race(
            self.app,
            self.name,
            &self.replicas[index % self.replicas.len()],
        )
    }

    /// Ana holds the lock and sleeps before her write; Ben asks, and goes on when her lease is over; then she wakes.
    async fn paused_holder(&self) -> Result<Vec<RacedAttempt>, SectionError> {
        let gate = format!("paused-holder-{}", Uuid::new_v4());
        let ana = Contender::buyer("Ana", "A1").frozen_at(&gate);
        let ana_is = ana.attempt;
        let unfit = |_| SectionError::Internal("a gate's name does not fit".to_owned());
        let gate: Name = gate.parse().map_err(unfit)?;
        let ended = CancellationToken::new();
        let ana = async {
            let got = self.send(ana, 0).await;
            ended.cancel();
            got
        };
        let ben = async {
            self.until_at_gate(ana_is, &gate, &ended).await;
            // She never reached her gate: her answer says why, and there is nobody to outwait.
            if ended.is_cancelled() {
                return None;
            }
            let ben = self.send(Contender::buyer("Ben", "A1"), 1).await;
            peers::open(self.app, &self.others, self.name.as_str(), &gate).await;
            Some(ben)
        };
        let (ana, ben) = tokio::join!(ana, ben);
        Ok([Some(ana), ben].into_iter().flatten().collect())
    }

    /// Returns when the attempt stands at the gate, has ended, or will not come any more.
    async fn until_at_gate(&self, attempt: Uuid, gate: &Name, ended: &CancellationToken) {
        let deadline = Instant::now() + HOLDER_LIMIT;
        while Instant::now() < deadline && !ended.is_cancelled() {
            let waiting = peers::waiting_at(self.app, &self.others, self.name.as_str(), gate).await;
            if waiting.iter().any(|waiter| waiter.attempt == attempt) {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits for the race's own releases and tells what is left then, on replicas that took no part, too. A silent peer is
    /// a gap, never a wait.
    async fn released(&self) -> Option<u64> {
        let deadline = Instant::now() + RELEASES_LIMIT;
        loop {
            let left = peers::leases_left(self.app, &self.others, self.name.as_str()).await;
            if left.is_none_or(|left| left == 0) || Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let all = [self.others.as_slice(), &self.absent].concat();
        peers::leases_left(self.app, &all, self.name.as_str()).await
    }

    /// What the replica that answered an attempt remembers of it. Another one is asked again while it does not tell:
    /// without its steps nobody can see what happened.
    async fn record_of(&self, raced: &RacedAttempt) -> Option<Record> {
        let asked = Instant::now();
        loop {
            let (replica, attempt) = (&raced.replica, raced.attempt);
            let record = peers::record_at(self.app, &self.others, replica, attempt).await;
            let is_final = *replica == self.app.me.name || raced.status == 0;
            if record.is_some() || is_final || asked.elapsed() >= RECORD_LIMIT {
                return record;
            }
            tokio::time::sleep(RECORD_PAUSE).await;
        }
    }

    /// Audits the room and keeps the race as its last.
    async fn finish(
        &self,
        race: Race,
        mut attempts: Vec<RacedAttempt>,
        leases_left: Option<u64>,
    ) -> Result<RaceResult, SectionError> {
        let mut snapshot = self.app.database.snapshot(REQUEST_LIMIT).await?;
        let room = room::store::load(&mut snapshot, self.name, &[]).await?;
        let (room, _) =
            room.ok_or_else(|| SectionError::NotFound(format!("room {}", self.name)))?;
        let audit = crate::audit::audit(&mut snapshot, room.id, leases_left).await?;
        snapshot.rollback().await;

        let records = attempts.iter().map(|raced| self.record_of(raced));
        let records = join_all(records).await;
        for (raced, record) in attempts.iter_mut().zip(&records) {
            // A refused attempt had a token as well.
            raced.token = raced
                .token
                .or_else(|| record.as_ref().and_then(|record| record.token()));
        }
        let last = LastRace {
            race,
            attempts: attempts.clone(),
            absent: self.absent.iter().map(|peer| peer.name.clone()).collect(),
            sentence: audit.sentence.clone(),
            clean: audit.clean,
            records: records.into_iter().flatten().collect(),
        };
        let mut transaction = self.app.database.begin(REQUEST_LIMIT).await?;
        store::keep(&mut transaction, room.id, &last).await?;
        transaction.commit().await.map_err(DatabaseError::from)?;
        Ok(RaceResult {
            race,
            attempts,
            audit,
        })
    }
}

/// Buyer i asks for seat i mod 10. The buyers of one seat go to the replicas in turn: if each seat met one replica only,
/// no lock would have to be shared.
fn crowd(seats: &[String]) -> Vec<(Contender, usize)> {
    let seats_in_turn = seats.iter().cycle().take(CROWD);
    let buyers = seats_in_turn.zip(0..);
    let buyers = buyers.map(|(seat, i)| {
        (
            Contender::buyer(&format!("buyer {i}"), seat),
            i / seats.len(),
        )
    });
    buyers.collect()
}
