//! Steps of all replicas, merged; and which of the replicas are there.
//!
//! Promises: a step of a replica that speaks is told at most one window after it was heard; a replica that is silent
//! or gone is said to be so, and delays nobody.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::board::Board;
use super::event::Event;
use super::merge::Merge;
use crate::app::App;
use crate::journal::{StepKind, Told};
use crate::peers::Replica;
use crate::peers::follow::{Heard, follow};
use crate::room::RoomName;

/// The lines that may be heard of other replicas before they are taken: enough for a few windows. A full queue makes
/// their connections wait, and what they cannot send they say they have not told.
const MOST_HEARD: usize = 32;

/// What is known of the other replicas beyond their steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Others {
    /// Grows with each sign that the room has changed.
    signs: u64,
    /// Leases of their ended attempts that may still stand; none when one of them does not say.
    pub(super) leases_left: Option<u64>,
}

/// Tells the steps of a room, for ever.
pub(super) async fn tell(
    app: Arc<App>,
    room: RoomName,
    board: Arc<Board>,
    mut replicas: watch::Receiver<Vec<Replica>>,
    others: watch::Sender<Others>,
) {
    let mut own = app.journal.listen(room.as_str());
    let (to, mut heard) = mpsc::channel(MOST_HEARD);
    let mut steps = Steps {
        app,
        room,
        board,
        others,
        to,
        merge: Merge::default(),
        followed: BTreeMap::new(),
        shown: Vec::new(),
    };
    loop {
        let due = steps.merge.due();
        tokio::select! {
            told = own.next() => steps.take(None, &told),
            Some((name, heard)) = heard.recv() => steps.hear(&name, heard),
            () = until(due) => steps.tell_due(),
            Ok(()) = replicas.changed() => {
                let replicas = replicas.borrow_and_update().clone();
                steps.follow(replicas);
            }
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

struct Steps {
    app: Arc<App>,
    room: RoomName,
    board: Arc<Board>,
    others: watch::Sender<Others>,
    to: mpsc::Sender<(String, Heard)>,
    merge: Merge<Event>,
    followed: BTreeMap<String, Followed>,
    /// The replicas as they were told last.
    shown: Vec<ShownReplica>,
}

/// Another replica.
struct Followed {
    url: String,
    state: State,
    _following: AbortOnDropHandle<()>,
}

/// What was last heard of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing yet.
    New,
    Alive {
        leases_left: u64,
    },
    Silent,
    Gone,
}

/// A replica as the stream tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ShownReplica {
    name: String,
    url: String,
    /// It answers.
    alive: bool,
    /// It is there and says nothing. Neither: nobody listens at its address.
    silent: bool,
}

impl Steps {
    /// Follows these replicas and no others; one that came back at another address is another one.
    fn follow(&mut self, replicas: Vec<Replica>) {
        let is_there = |name: &String, followed: &mut Followed| {
            let mut replicas = replicas.iter();
            replicas.any(|replica| replica.name == *name && replica.url == followed.url)
        };
        self.followed.retain(is_there);
        for replica in replicas {
            if !self.followed.contains_key(&replica.name) {
                self.begin_to_follow(replica);
            }
        }
        self.company_changed();
    }

    fn begin_to_follow(&mut self, replica: Replica) {
        let (name, url) = (replica.name.clone(), replica.url.clone());
        let (app, room) = (Arc::clone(&self.app), self.room.to_string());
        let following = tokio::spawn(follow(app, replica, room, self.to.clone()));
        let followed = Followed {
            url,
            state: State::New,
            _following: AbortOnDropHandle::new(following),
        };
        self.followed.insert(name, followed);
    }

    fn hear(&mut self, name: &str, heard: Heard) {
        let Some(followed) = self.followed.get_mut(name) else {
            return;
        };
        let before = followed.state;
        followed.state = match &heard {
            Heard::Beat(beat) => State::Alive {
                leases_left: beat.leases_left,
            },
            Heard::Told(_) => before.speaking(),
            Heard::Silent => State::Silent,
            Heard::Gone => State::Gone,
        };
        if followed.state != before {
            self.company_changed();
        }
        if let Heard::Told(told) = heard {
            self.take(Some(name), &told);
        }
    }

    /// Takes what was told, by another replica or by this one.
    fn take(&mut self, by: Option<&str>, told: &[Arc<Told>]) {
        for told in told {
            self.take_one(by, told);
        }
    }

    fn take_one(&mut self, by: Option<&str>, told: &Told) {
        if is_sign_of_change(told) {
            self.others.send_modify(|others| others.signs += 1);
        }
        match (event(told), told.at_ms()) {
            (Some(event), Some(at_ms)) => self.merge.put(at_ms, Instant::now(), event),
            _ if matches!(told, Told::Untold) => {
                let replica = by.unwrap_or(&self.app.me.name);
                self.board.pin(&[untold(replica)]);
            }
            _ => {}
        }
    }

    fn tell_due(&mut self) {
        let due = self.merge.take(Instant::now());
        self.board.pin(&due);
    }

    fn company_changed(&mut self) {
        let states = self.followed.values().map(|followed| followed.state);
        let leases_left = states.map(State::leases_left).sum();
        self.others.send_if_modified(|others| {
            let before = std::mem::replace(&mut others.leases_left, leases_left);
            before != leases_left
        });
        // Who was asked just now answers soon, or is soon known not to.
        let all_known = self
            .followed
            .values()
            .all(|followed| followed.state != State::New);
        let shown = self.show();
        if all_known && shown != self.shown {
            self.board.pin_whole(&replicas(&shown));
            self.shown = shown;
        }
    }

    fn show(&self) -> Vec<ShownReplica> {
        let me = ShownReplica {
            name: self.app.me.name.clone(),
            url: self.app.me.url.clone(),
            alive: true,
            silent: false,
        };
        let others = self.followed.iter().map(|(name, followed)| ShownReplica {
            name: name.clone(),
            url: followed.url.clone(),
            alive: matches!(followed.state, State::Alive { .. }),
            silent: followed.state == State::Silent,
        });
        let mut shown: Vec<_> = others.chain([me]).collect();
        shown.sort_by(|one, other| one.name.cmp(&other.name));
        shown
    }
}

impl State {
    /// A step is a sign of life as good as a beat.
    fn speaking(self) -> Self {
        match self {
            Self::Alive { .. } => self,
            _ => Self::Alive { leases_left: 0 },
        }
    }

    fn leases_left(self) -> Option<u64> {
        match self {
            Self::Alive { leases_left } => Some(leases_left),
            Self::Gone => Some(0),
            Self::New | Self::Silent => None,
        }
    }
}

fn is_sign_of_change(told: &Told) -> bool {
    match told {
        Told::Step(told) => told.step.kind == StepKind::Committed,
        Told::Race(_) | Told::Changed => true,
        Told::Ended(_) | Told::Untold => false,
    }
}

fn event(told: &Told) -> Option<Event> {
    match told {
        Told::Step(told) => Some(Event::new("step", told)),
        Told::Ended(told) => Some(Event::new("ended", told)),
        Told::Race(told) => Some(Event::new("race", told)),
        Told::Changed | Told::Untold => None,
    }
}

fn untold(replica: &str) -> Event {
    #[derive(Serialize)]
    struct Untold<'a> {
        replica: &'a str,
    }
    Event::new("untold", &Untold { replica })
}

fn replicas(replicas: &[ShownReplica]) -> Event {
    #[derive(Serialize)]
    struct Replicas<'a> {
        replicas: &'a [ShownReplica],
    }
    Event::new("replicas", &Replicas { replicas })
}
