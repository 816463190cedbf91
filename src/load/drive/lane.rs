//! A side under way: its room, and all that is recorded of it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::Method;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::load::client::{Answer, Client, Failure};
use crate::load::history::{Event, What, Wish};
use crate::load::measure::{Measures, Outcome, Sample, Timing};
use crate::load::room::{Problem, Room};
use crate::load::schedule::{Action, Arrival, Wishes};
use crate::load::settings::Settings;

/// Cents have two decimals.
const CENTS: u32 = 2;

/// One side in one repetition.
#[derive(Debug)]
pub struct Lane {
    client: Arc<Client>,
    room: Room,
    /// The targets by their numbers.
    names: Arc<[String]>,
    run_began: Instant,
    warm_up: Duration,
    timeout: Duration,
    recorded: Mutex<Recorded>,
    wishes: Mutex<ClosedWishes>,
}

/// All that is recorded of a side.
#[derive(Debug)]
pub struct Recorded {
    /// What was done and heard.
    pub events: Vec<Event>,
    /// What is measured.
    pub measures: Measures,
    /// How often each seat was acknowledged.
    acknowledged: HashMap<u32, u32>,
    /// Seats that were acknowledged twice, as far as was seen at once.
    pub twice: u64,
    last_done: Duration,
    latest: Duration,
    /// When the clients of a closed model first wanted more seats than there are, in the side's own time.
    pub sold_out: Option<Duration>,
}

/// The wishes of a closed model, in turn.
#[derive(Debug)]
struct ClosedWishes {
    wishes: Wishes,
    /// Of those that come at once, the ones that are not taken yet, the last one first.
    waiting: Vec<Action>,
    taken: usize,
}

/// What a replica answers when it was done.
#[derive(Deserialize)]
struct Done {
    id: Uuid,
}

impl Lane {
    /// A side that has done nothing yet.
    pub fn new(
        client: Arc<Client>,
        room: Room,
        names: Arc<[String]>,
        wishes: Wishes,
        run_began: Instant,
        settings: &Settings,
    ) -> Self {
        Self {
            client,
            room,
            names,
            run_began,
            warm_up: settings.warm_up,
            timeout: settings.timeout,
            recorded: Mutex::new(Recorded::new(settings.duration)),
            wishes: Mutex::new(ClosedWishes {
                wishes,
                waiting: Vec::new(),
                taken: 0,
            }),
        }
    }

    /// Its room.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// The next wish of a closed model with its number, at this moment of the side's own time; none when the seats are
    /// sold out.
    pub(super) fn next_wish(&self, at: Duration) -> Option<(usize, Action)> {
        let (number, action) = unpoisoned(&self.wishes).next()?;
        if let Action::Book { seat, .. } = action
            && seat as usize >= self.room.seats.len()
        {
            self.recorded().sold_out.get_or_insert(at);
            return None;
        }
        Some((number, action))
    }

    /// Makes one attempt and records it. `intended` is when it should have begun, and `at` the same in the side's own
    /// time. Tells whether there was an answer.
    pub(super) async fn attempt(
        &self,
        number: usize,
        action: Action,
        intended: Instant,
        at: Duration,
    ) -> bool {
        let target = self.room.targets[number % self.room.targets.len()];
        let id = Uuid::new_v4();
        let wish = self.wish(action);
        let (path, body) = request(id, &wish);
        let measured = at.checked_sub(self.warm_up);
        let invoked = What::Invoked {
            intended_ns: self.nanoseconds(intended),
            measured_ns: measured.map(nanoseconds),
            target: self.names[target].clone(),
            wish,
        };
        self.record(id, invoked);
        let began = Instant::now();
        let path = self.room.path(path);
        let answer = self
            .client
            .send(target, Method::POST, &path, Some(body), self.timeout)
            .await;
        let ended = Instant::now();
        let (what, outcome, timing) = judge(&answer);

        let sample = Sample {
            at: measured.unwrap_or_default(),
            response: ended.saturating_duration_since(intended),
            service: ended - began,
            outcome,
            timing,
        };
        let event = Event {
            at_ns: self.nanoseconds(ended),
            attempt: id,
            what,
        };
        let mut recorded = self.recorded();
        recorded.end(event, action, measured.is_some().then_some(sample), at);
        answer.is_ok()
    }

    /// These were due and not begun. Those of the warm-up do not count.
    pub(super) fn were_not_begun(&self, arrivals: &[Arrival]) {
        let measured = arrivals.iter().filter(|arrival| arrival.at >= self.warm_up);
        self.recorded().measures.not_begun += measured.count() as u64;
    }

    /// A turn is over.
    pub(super) fn turn_ends(&self, turn: Range<Duration>) {
        self.recorded().turn_ends(turn, self.warm_up);
    }

    /// What is recorded so far.
    pub fn recorded(&self) -> MutexGuard<'_, Recorded> {
        unpoisoned(&self.recorded)
    }

    fn record(&self, attempt: Uuid, what: What) {
        let at_ns = self.nanoseconds(Instant::now());
        self.recorded().events.push(Event {
            at_ns,
            attempt,
            what,
        });
    }

    fn wish(&self, action: Action) -> Wish {
        let name =
            |of: &[String], number: u32| of.get(number as usize).cloned().unwrap_or_default();
        match action {
            Action::Book { seat, buyer } => Wish::Book {
                seat: name(&self.room.seats, seat),
                buyer: format!("buyer {}", buyer + 1),
            },
            Action::Transfer { from, to, cents } => Wish::Transfer {
                from: name(&self.room.wallets, from),
                to: name(&self.room.wallets, to),
                amount: Decimal::new(cents.into(), CENTS),
            },
        }
    }

    fn nanoseconds(&self, at: Instant) -> u64 {
        nanoseconds(at.saturating_duration_since(self.run_began))
    }
}

impl Recorded {
    fn new(duration: Duration) -> Self {
        Self {
            events: Vec::new(),
            measures: Measures::new(duration),
            acknowledged: HashMap::new(),
            twice: 0,
            last_done: Duration::ZERO,
            latest: Duration::ZERO,
            sold_out: None,
        }
    }

    /// What was driven of a turn counts as measured time: until its last good answer, and no longer than there was
    /// something to sell.
    fn turn_ends(&mut self, turn: Range<Duration>, warm_up: Duration) {
        let driven = self.sold_out.unwrap_or(turn.end).min(turn.end);
        let start = turn.start.max(warm_up);
        let end = driven.max(self.last_done);
        self.measures.elapsed += end.saturating_sub(start);
        let measured = |at: Duration| at.saturating_sub(warm_up);
        self.measures.drove(measured(start)..measured(driven));
        self.last_done = Duration::ZERO;
    }

    /// The side's own time of the last attempt that ended.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    fn end(&mut self, event: Event, action: Action, sample: Option<Sample>, at: Duration) {
        if matches!(event.what, What::Ok { .. })
            && let Action::Book { seat, .. } = action
        {
            let times = self.acknowledged.entry(seat).or_default();
            *times += 1;
            self.twice += u64::from(*times == 2);
        }
        self.events.push(event);
        self.latest = self.latest.max(at);
        let Some(sample) = sample else { return };
        if sample.outcome == Outcome::Done {
            self.last_done = self.last_done.max(at + sample.response);
        }
        self.measures.record(&sample);
    }
}

impl ClosedWishes {
    fn next(&mut self) -> Option<(usize, Action)> {
        if self.waiting.is_empty() {
            self.waiting = self.wishes.together();
            self.waiting.reverse();
        }
        let action = self.waiting.pop()?;
        self.taken += 1;
        Some((self.taken - 1, action))
    }
}

/// Path and body of the request for a wish.
fn request(attempt: Uuid, wish: &Wish) -> (&'static str, Vec<u8>) {
    let (path, body) = match wish {
        Wish::Book { seat, buyer } => {
            let body = json!({"attempt": attempt, "seat": seat, "buyer": buyer});
            ("/bookings", body)
        }
        Wish::Transfer { from, to, amount } => {
            let body = json!({"attempt": attempt, "from": from, "to": to, "amount": amount});
            ("/transfers", body)
        }
    };
    (path, body.to_string().into_bytes())
}

/// What an answer says. Only a replica that says so makes an attempt one that did not happen; a failure never is a
/// refusal.
fn judge(answer: &Result<Answer, Failure>) -> (What, Outcome, Option<Timing>) {
    let answer = match answer {
        Ok(answer) => answer,
        Err(failure) => {
            let why = failure.kind.to_string();
            let what = if failure.may_be_read {
                What::Unknown { why }
            } else {
                What::Unsent { why }
            };
            return (what, Outcome::Failed(failure.kind), None);
        }
    };
    let timing = answer.headers.get("server-timing");
    let timing = timing.and_then(|header| Timing::parse(header.to_str().ok()?));
    if answer.status == 201
        && let Ok(Done { id }) = serde_json::from_slice(&answer.body)
    {
        return (What::Ok { id }, Outcome::Done, timing);
    }
    let problem = Problem::of(answer);
    let why = match problem.word() {
        "" => format!("status {}", answer.status),
        word => word.to_owned(),
    };
    if problem.did_not_happen() {
        (
            What::Refused { why: why.clone() },
            Outcome::Refused(why),
            timing,
        )
    } else {
        (
            What::Unknown { why: why.clone() },
            Outcome::Unclear(why),
            timing,
        )
    }
}

fn nanoseconds(of: Duration) -> u64 {
    u64::try_from(of.as_nanos()).unwrap_or(u64::MAX)
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_in_which_nothing_was_left_to_sell_is_not_measured() {
        let mut recorded = Recorded::new(SECOND * 8);
        recorded.turn_ends(Duration::ZERO..SECOND * 4, SECOND);
        assert_eq!(recorded.measures.elapsed, SECOND * 3, "without the warm-up");

        recorded.sold_out = Some(SECOND * 5);
        recorded.turn_ends(SECOND * 4..SECOND * 8, SECOND);
        assert_eq!(recorded.measures.elapsed, SECOND * 4);

        recorded.turn_ends(SECOND * 8..SECOND * 9, SECOND);
        assert_eq!(recorded.measures.elapsed, SECOND * 4, "a turn too late");
    }

    #[test]
    fn a_turn_lasts_until_its_last_good_answer() {
        let mut recorded = Recorded::new(SECOND * 8);
        recorded.last_done = SECOND * 6;
        recorded.turn_ends(Duration::ZERO..SECOND * 4, Duration::ZERO);
        assert_eq!(recorded.measures.elapsed, SECOND * 6);
    }
}
