//! The use case: make rooms, warm up, drive the sides, read what was kept, check, remove the rooms, report.
//!
//! Rooms are removed whatever happens: also after a failure on the way, and after a stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hyper::Method;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::check;
use super::client::Client;
use super::drive::{self, Lane, Plan};
use super::generator::Usage;
use super::history::History;
use super::report::{Report, SideRun};
use super::room::{MOST_SEATS, ROOM_LIMIT, Room, RoomError, Size};
use super::schedule::{self, Arrival, Wishes};
use super::settings::{Pace, Settings, Side, Sides, Target};
use super::watch::Watch;

/// How many seats the room of a closed model gets for each second: more than two replicas sell on most machines. Where
/// they sell more, the report says so, and its figures are those of the time until then.
const SEATS_A_SECOND: f64 = 8000.0;

/// How long a target may take to say that it is there.
const GREETING_LIMIT: Duration = Duration::from_secs(5);

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something was asked for that cannot be.
    #[error("{0}")]
    Usage(String),
    /// The replicas cannot be reached, or do not do what they should.
    #[error("{0}")]
    Failed(String),
}

/// What a run brings.
#[derive(Debug)]
pub struct Ran {
    /// The report.
    pub report: Report,
    /// What it was made from: one history for each side of each repetition.
    pub histories: Vec<History>,
}

/// What does not change from one repetition to the next.
struct Run<'a> {
    settings: &'a Settings,
    client: Arc<Client>,
    targets: Vec<Target>,
    names: Arc<[String]>,
    began: Instant,
    stop: &'a CancellationToken,
}

/// Runs it all; `watch` tells meanwhile how it stands. When `stop` is cancelled, it ends with a report of what there is.
///
/// # Errors
/// [`RunError`]; then no room is left behind, as far as replicas answered.
pub async fn run(
    settings: &Settings,
    watch: &Watch,
    stop: &CancellationToken,
) -> Result<Ran, RunError> {
    let run = Run::new(settings, stop).await?;
    run.greet().await?;
    let sides = run.sides().await?;
    check_thresholds(settings, &sides)?;

    let usage = Usage::begin();
    let mut results: Vec<SideRun> = sides.into_iter().map(SideRun::new).collect();
    let mut histories = Vec::new();
    let mut schedules = Vec::new();
    for repetition in 1..=settings.repeat {
        let arrivals = run.arrivals(repetition);
        schedules.push((!arrivals.is_empty()).then(|| schedule::fingerprint(&arrivals)));
        let lanes = run.lanes(&results, repetition, &arrivals).await?;
        watch.begins(repetition, labelled(&results, &lanes));
        run.drive(&lanes, arrivals).await;
        let all = join_all(lanes.iter().map(|lane| run.history(lane, repetition))).await;
        let left = run.remove(&lanes).await;
        for ((result, lane), mut history) in results.iter_mut().zip(&lanes).zip(all) {
            history.side.clone_from(&result.side.label);
            let verdict = check::check(&history);
            result.add(lane, verdict);
            result.left.extend(
                left.iter()
                    .filter(|room| lane.room().name() == *room)
                    .cloned(),
            );
            histories.push(history);
        }
        if stop.is_cancelled() {
            break;
        }
    }
    let report = Report::new(
        settings,
        results,
        schedules,
        usage.ends(),
        stop.is_cancelled(),
    );
    Ok(Ran { report, histories })
}

impl<'a> Run<'a> {
    async fn new(settings: &'a Settings, stop: &'a CancellationToken) -> Result<Self, RunError> {
        let targets = settings.asked();
        let client = Client::new(&targets).await;
        let client = client.map_err(|(target, error)| {
            RunError::Failed(format!("{target} has no address: {error}"))
        })?;
        Ok(Self {
            settings,
            client: Arc::new(client),
            names: targets.iter().map(ToString::to_string).collect(),
            targets,
            began: Instant::now(),
            stop,
        })
    }

    /// Asks every target whether it is there. One that is not may come yet; without any there is nothing to drive.
    async fn greet(&self) -> Result<(), RunError> {
        let asked = (0..self.targets.len()).map(|target| {
            self.client
                .send(target, Method::GET, "/healthz", None, GREETING_LIMIT)
        });
        let answers = join_all(asked).await;
        let failed = self.targets.iter().zip(answers);
        let failed: Vec<String> = failed
            .filter_map(|(target, answer)| Some(format!("{target}: {}", answer.err()?)))
            .collect();
        if failed.len() == self.targets.len() {
            return Err(RunError::Failed(format!(
                "no target answers: {}",
                failed.join("; ")
            )));
        }
        for silent in failed {
            tracing::warn!("{silent}; requests are sent there all the same");
        }
        Ok(())
    }

    async fn sides(&self) -> Result<Vec<Side>, RunError> {
        match &self.settings.sides {
            Sides::Given(sides) => Ok(sides.clone()),
            Sides::AllLocks => self.all_locks().await,
        }
    }

    /// Locking off, and each lock system that all targets have.
    async fn all_locks(&self) -> Result<Vec<Side>, RunError> {
        let mut common: Option<Vec<String>> = None;
        for (number, target) in self.targets.iter().enumerate() {
            let locks = self.locks_of(number).await;
            let locks = locks.map_err(|why| RunError::Failed(format!("{target}: {why}")))?;
            common = Some(match common {
                None => locks,
                Some(common) => common
                    .into_iter()
                    .filter(|lock| locks.contains(lock))
                    .collect(),
            });
        }
        let locks = common.unwrap_or_default().into_iter();
        let locks = locks.map(|lock| Side::with("lock", &lock));
        Ok(std::iter::once(Side::with("locking", "off"))
            .chain(locks)
            .collect())
    }

    async fn locks_of(&self, target: usize) -> Result<Vec<String>, String> {
        #[derive(Deserialize)]
        struct Lock {
            lock: String,
            available: bool,
        }
        let answer = self
            .client
            .send(target, Method::GET, "/api/locks", None, ROOM_LIMIT)
            .await;
        let answer = answer.map_err(|failure| failure.to_string())?;
        let locks: Vec<Lock> = serde_json::from_slice(&answer.body)
            .map_err(|error| format!("its lock systems cannot be read: {error}"))?;
        let available = locks.into_iter().filter(|lock| lock.available);
        Ok(available.map(|lock| lock.lock).collect())
    }

    fn seed(&self, repetition: u32) -> u64 {
        self.settings.seed.wrapping_add(u64::from(repetition) - 1)
    }

    /// All that comes in an open model; nothing in a closed one, whose clients come when they have their answers.
    fn arrivals(&self, repetition: u32) -> Arc<[Arrival]> {
        let Pace::Open { rate } = self.settings.pace else {
            return Arc::new([]);
        };
        let (workload, length) = (self.settings.workload, self.settings.driven());
        schedule::arrivals(workload, self.seed(repetition), rate, length).into()
    }

    /// Makes the room of each side. If one cannot be made, those that were are removed.
    async fn lanes(
        &self,
        sides: &[SideRun],
        repetition: u32,
        arrivals: &[Arrival],
    ) -> Result<Vec<Arc<Lane>>, RunError> {
        let size = self.size(arrivals)?;
        let run = Uuid::new_v4().simple().to_string();
        let mut lanes = Vec::with_capacity(sides.len());
        for (number, result) in (1..).zip(sides) {
            let name = format!("load-{}-{repetition}-{number}", &run[..12]);
            let targets = self.numbers(&result.side);
            let think = self.settings.think;
            let room = Room::make(&self.client, name, targets, &result.side, size, think).await;
            match room {
                Ok(room) => lanes.push(Arc::new(self.lane(room, repetition))),
                Err(error) => {
                    self.remove(&lanes).await;
                    return Err(not_made(&result.side, &error));
                }
            }
        }
        Ok(lanes)
    }

    fn lane(&self, room: Room, repetition: u32) -> Lane {
        Lane::new(
            Arc::clone(&self.client),
            room,
            Arc::clone(&self.names),
            Wishes::new(self.settings.workload, self.seed(repetition)),
            self.began,
            self.settings,
        )
    }

    fn size(&self, arrivals: &[Arrival]) -> Result<Size, RunError> {
        let seats = match self.settings.pace {
            Pace::Open { .. } => schedule::seats_wanted(arrivals),
            Pace::Closed { .. } => {
                let most = self.settings.driven().as_secs_f64() * SEATS_A_SECOND;
                (most as u32).min(MOST_SEATS)
            }
        };
        if seats > MOST_SEATS {
            let why = "a room has at most {MOST_SEATS} seats: lower --rate or --duration, or raise the buyers of a \
                       seat with --hot";
            return Err(RunError::Usage(format!(
                "{seats} seats would be wanted, and {}",
                why.replace("{MOST_SEATS}", &MOST_SEATS.to_string())
            )));
        }
        Ok(Size {
            seats,
            wallets: self.settings.workload.wallets,
        })
    }

    /// The numbers of a side's targets.
    fn numbers(&self, side: &Side) -> Vec<usize> {
        let number = |target: &Target| self.targets.iter().position(|known| known == target);
        let asked = self.settings.targets_of(side).iter();
        asked.filter_map(number).collect()
    }

    /// All sides at the same time, or in turns.
    async fn drive(&self, lanes: &[Arc<Lane>], arrivals: Arc<[Arrival]>) {
        let plan = match self.settings.pace {
            Pace::Open { .. } => Plan::Open {
                arrivals,
                in_flight: self.settings.in_flight,
            },
            Pace::Closed { clients } => Plan::Closed { clients },
        };
        let length = self.settings.driven();
        if self.settings.interleave.is_none() {
            let all = lanes
                .iter()
                .map(|lane| drive::turn(lane, &plan, Duration::ZERO..length, self.stop));
            join_all(all).await;
            return;
        }
        for (side, turn) in drive::turns(length, self.settings.turn(), lanes.len()) {
            if self.stop.is_cancelled() {
                return;
            }
            drive::turn(&lanes[side], &plan, turn, self.stop).await;
        }
    }

    async fn history(&self, lane: &Lane, repetition: u32) -> History {
        let mut history = History::begins(String::new(), repetition);
        history.events = std::mem::take(&mut lane.recorded().events);
        let acknowledged = history.acknowledged();
        let kept = lane.room().kept(&self.client, &acknowledged).await;
        history.kept = kept.map_err(|error| {
            tracing::warn!(%error, "what a room held at the end cannot be used");
            format!("what the room held at the end cannot be used: {error}")
        });
        history
    }

    /// Removes the rooms and returns the names of those that are left.
    async fn remove(&self, lanes: &[Arc<Lane>]) -> Vec<String> {
        let removed = lanes.iter().map(|lane| async {
            let removed = lane.room().remove(&self.client).await;
            removed.err().map(|error| {
                tracing::warn!(%error, room = lane.room().name(), "a room could not be removed");
                lane.room().name().to_owned()
            })
        });
        join_all(removed).await.into_iter().flatten().collect()
    }
}

fn labelled(sides: &[SideRun], lanes: &[Arc<Lane>]) -> Vec<(String, Arc<Lane>)> {
    let labels = sides.iter().map(|side| side.side.label.clone());
    labels.zip(lanes.iter().cloned()).collect()
}

fn not_made(side: &Side, error: &RoomError) -> RunError {
    let line = format!("side {}: {error}", side.label);
    match error {
        RoomError::NotTaken(_) => RunError::Usage(line),
        RoomError::Failed { .. } | RoomError::Unexpected(_) | RoomError::Disturbed(_) => {
            RunError::Failed(line)
        }
    }
}

/// A threshold of a side that is not there could not hold.
fn check_thresholds(settings: &Settings, sides: &[Side]) -> Result<(), RunError> {
    let named = settings
        .thresholds
        .iter()
        .filter_map(|threshold| threshold.side.as_ref());
    for name in named {
        if !sides.iter().any(|side| side.label == *name) {
            let sides: Vec<_> = sides.iter().map(|side| side.label.as_str()).collect();
            return Err(RunError::Usage(format!(
                "--threshold names the side {name:?}, and there are {}",
                sides.join(", ")
            )));
        }
    }
    Ok(())
}
