//! All switches as a form: what each shows, and whether it has a meaning with the lock that is chosen.

use std::ops::RangeInclusive;

use super::words::seconds;
use crate::database::Dialect;
use crate::http::replicas::ShownLock;
use crate::lock::{Guarantees, LockName};
use crate::room::{Fencing, Order, Release, Switches, THINK_MS, TTL_MS, WAIT_MS, Waiting};

/// How many times the work a lease should last.
const LEASE_TO_WORK: u32 = 3;

/// A switch on the form.
#[derive(Debug)]
pub struct SwitchView {
    /// Its JSON name.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// What it shows, in one sentence.
    pub shows: &'static str,
    /// What it is set with.
    pub control: Control,
    /// What is to be known about it with the lock that is chosen.
    pub note: Option<Note>,
}

/// What a switch is set with.
#[derive(Debug)]
pub enum Control {
    /// One of a few, all in sight.
    Few(Vec<Choice>),
    /// One of many.
    Many(Vec<Choice>),
    /// A number of milliseconds.
    Number {
        /// What it is now.
        value: u32,
        /// The smallest it may be.
        least: u32,
        /// The largest it may be.
        most: u32,
    },
}

/// A value that a switch may have.
#[derive(Debug)]
pub struct Choice {
    /// The value in forms.
    pub value: &'static str,
    /// The value for people.
    pub label: &'static str,
    /// Whether it is the value now.
    pub chosen: bool,
    /// Why it cannot be chosen, if it cannot.
    pub why_not: Option<String>,
}

/// What is to be known about a switch now.
#[derive(Debug, PartialEq, Eq)]
pub struct Note {
    /// In words.
    pub text: String,
    /// Whether the switch has a meaning nevertheless.
    pub applies: bool,
}

/// All switches of a room.
pub fn switchboard(switches: &Switches, dialect: Dialect, locks: &[ShownLock]) -> Vec<SwitchView> {
    let now = Now {
        switches,
        guarantees: switches.lock.guarantees(),
        dialect,
    };
    vec![
        SwitchView {
            name: "locking",
            label: "Locking",
            shows: "The toggle: without it the races happen.",
            control: on_off(switches.locking),
            note: None,
        },
        SwitchView {
            name: "lock",
            label: "Lock system",
            shows: "Which lock is taken for each seat and each wallet.",
            control: Control::Many(lock_choices(switches.lock, locks)),
            note: now.about_lock(),
        },
        SwitchView {
            name: "fencing",
            label: "Fence",
            shows: "Refuses a holder whose token is stale: fully, only at the write as textbooks draw it, or not at all.",
            control: few(
                switches.fencing,
                [
                    (Fencing::FromFirstRead, "from_first_read", "from first read"),
                    (Fencing::OnWrite, "on_write", "on write"),
                    (Fencing::Off, "off", "off"),
                ],
            ),
            note: now.about_fencing(),
        },
        SwitchView {
            name: "compare",
            label: "Compare",
            shows: "The last guard: writes only if every row is as it was read. It needs no lock at all.",
            control: on_off(switches.compare),
            note: None,
        },
        SwitchView {
            name: "order",
            label: "Order of two locks",
            shows: "Sorted never deadlocks; as given takes the giver's lock, thinks, then the taker's, and can deadlock.",
            control: few(
                switches.order,
                [
                    (Order::Sorted, "sorted", "sorted"),
                    (Order::AsGiven, "as_given", "as given"),
                ],
            ),
            note: now.about_order(),
        },
        SwitchView {
            name: "release",
            label: "Release",
            shows: "Blind deletes the lock whoever holds it, also when the own lease is long over.",
            control: few(
                switches.release,
                [
                    (Release::OwnerChecked, "owner_checked", "owner checked"),
                    (Release::Blind, "blind", "blind"),
                ],
            ),
            note: now.about_release(),
        },
        SwitchView {
            name: "waiting",
            label: "Waiting",
            shows: "Woken by the lock system, or asking again and again with growing pauses.",
            control: few(
                switches.waiting,
                [
                    (Waiting::Notify, "notify", "notify"),
                    (Waiting::Backoff, "backoff", "back-off"),
                ],
            ),
            note: now.about_waiting(),
        },
        SwitchView {
            name: "ttl_ms",
            label: "Lease",
            shows: "How long a lease lasts unrenewed.",
            control: number(switches.ttl_ms, &TTL_MS),
            note: now.about_ttl(),
        },
        SwitchView {
            name: "renew",
            label: "Renewal",
            shows: "Whether a lease is renewed while it is held.",
            control: on_off(switches.renew),
            note: now.about_renewal(),
        },
        SwitchView {
            name: "wait_ms",
            label: "Longest wait",
            shows: "How long an attempt waits for its locks before it fails fast; 0 tries once.",
            control: number(switches.wait_ms, &WAIT_MS),
            note: now.without_locking(),
        },
        SwitchView {
            name: "think_ms",
            label: "Work",
            shows: "The work between read and write: it opens the window for a race.",
            control: number(switches.think_ms, &THINK_MS),
            note: None,
        },
    ]
}

/// The switches as a form in itself: what the page's form holds as long as nobody touches it.
pub fn as_drawn(switchboard: &[SwitchView]) -> String {
    let pair = |switch: &SwitchView| Some(format!("{}={}", switch.name, switch.control.value()?));
    let pairs: Vec<_> = switchboard.iter().filter_map(pair).collect();
    pairs.join("&")
}

impl Control {
    /// What it is set to.
    fn value(&self) -> Option<String> {
        match self {
            Self::Few(choices) | Self::Many(choices) => choices
                .iter()
                .find(|choice| choice.chosen)
                .map(|choice| choice.value.to_owned()),
            Self::Number { value, .. } => Some(value.to_string()),
        }
    }
}

fn on_off(is_on: bool) -> Control {
    few(is_on, [(true, "true", "on"), (false, "false", "off")])
}

fn few<T: PartialEq, const N: usize>(
    now: T,
    choices: [(T, &'static str, &'static str); N],
) -> Control {
    let choice = |(value, name, label)| Choice {
        value: name,
        label,
        chosen: value == now,
        why_not: None,
    };
    Control::Few(choices.into_iter().map(choice).collect())
}

fn number(value: u32, range: &RangeInclusive<u32>) -> Control {
    Control::Number {
        value,
        least: *range.start(),
        most: *range.end(),
    }
}

fn lock_choices(chosen: LockName, locks: &[ShownLock]) -> Vec<Choice> {
    let choice = |shown: &ShownLock| Choice {
        value: shown.lock.as_str(),
        label: shown.lock.as_str(),
        chosen: shown.lock == chosen,
        why_not: shown.why_not.clone(),
    };
    locks.iter().map(choice).collect()
}

/// What decides whether a switch has a meaning.
struct Now<'a> {
    switches: &'a Switches,
    guarantees: &'a Guarantees,
    dialect: Dialect,
}

impl Now<'_> {
    fn without_locking(&self) -> Option<Note> {
        let off = "No effect while locking is off: no lock is taken.";
        (!self.switches.locking).then(|| no_effect(off))
    }

    fn is_row_on_sqlite(&self) -> bool {
        self.switches.lock == LockName::Row && self.dialect == Dialect::Sqlite
    }

    fn about_lock(&self) -> Option<Note> {
        self.without_locking()
            .or_else(|| Some(note(self.guarantees.cannot)))
    }

    fn about_fencing(&self) -> Option<Note> {
        let why = if !self.switches.locking {
            "without a lock there is no token".to_owned()
        } else if self.guarantees.token.is_none() {
            format!("{} gives no token", self.switches.lock)
        } else {
            return None;
        };
        let rest = match self.switches.fencing {
            Fencing::Off => ".",
            _ => "; a write still asks that nobody has stamped the row since the switches changed.",
        };
        Some(no_effect(format!("Nothing to check now: {why}{rest}")))
    }

    fn about_order(&self) -> Option<Note> {
        let in_locks = || {
            if self.is_row_on_sqlite() {
                let why = "No effect here: on SQLite, row is one lock for the whole file. So crossing cannot \
                           deadlock here, both transfers succeed.";
                Some(no_effect(why))
            } else if self.switches.lock == LockName::Row {
                Some(note(
                    "Under row the rows are the locks, and are taken in this order.",
                ))
            } else {
                None
            }
        };
        self.without_locking().or_else(in_locks)
    }

    fn about_release(&self) -> Option<Note> {
        let in_locks = || {
            let why = match self.switches.lock {
                LockName::Mutex => "a mutex is let go by its holder only",
                LockName::Row => "rows are let go by the end of the transaction",
                _ => "a holder's entry is its own, nobody else's can stand in its place",
            };
            let has_none = !self.guarantees.blind_release_applies;
            has_none.then(|| no_effect(format!("No effect with this lock: {why}.")))
        };
        self.without_locking().or_else(in_locks)
    }

    fn about_waiting(&self) -> Option<Note> {
        let in_locks = || match self.switches.lock {
            LockName::Row => Some(no_effect(
                "No effect with this lock: the database itself lets those wait who want a row.",
            )),
            LockName::Redlock | LockName::Dynamodb => Some(note(format!(
                "{} wakes nobody: both ask again and again.",
                self.switches.lock
            ))),
            LockName::Table => Some(note(
                "On SQLite, table wakes nobody: there, both ask again and again.",
            )),
            _ => None,
        };
        self.without_locking().or_else(in_locks)
    }

    fn about_renewal(&self) -> Option<Note> {
        let in_locks = || {
            let why = match self.switches.lock {
                LockName::Mutex => "a mutex is held until it is let go",
                _ => "it is held until the transaction ends",
            };
            let has_none = !self.guarantees.renew_applies;
            has_none.then(|| {
                no_effect(format!(
                    "No effect with this lock: there is no lease, {why}."
                ))
            })
        };
        self.without_locking().or_else(in_locks)
    }

    fn about_ttl(&self) -> Option<Note> {
        self.about_renewal().or_else(|| {
            if !self.guarantees.ttl_applies {
                let why = "No effect with this lock: the lease is the session's time.";
                return Some(no_effect(why));
            }
            let ttl = self.switches.ttl_ms;
            let wanted = self.switches.think_ms * LEASE_TO_WORK;
            if let Some(minimum) = self.guarantees.minimum_ttl_ms.filter(|least| ttl < *least) {
                let lock = self.switches.lock;
                Some(note(format!("{lock} raises it to {}.", seconds(minimum))))
            } else if ttl < wanted {
                Some(note(format!(
                    "A lease should last at least {LEASE_TO_WORK} × the work, that is {}.",
                    seconds(wanted)
                )))
            } else {
                None
            }
        })
    }
}

fn note(text: impl Into<String>) -> Note {
    Note {
        text: text.into(),
        applies: true,
    }
}

fn no_effect(text: impl Into<String>) -> Note {
    Note {
        text: text.into(),
        applies: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The switches that have no effect.
    fn idle(switches: &Switches, dialect: Dialect) -> Vec<&'static str> {
        let board = switchboard(switches, dialect, &[]).into_iter();
        board
            .filter(|switch| switch.note.as_ref().is_some_and(|note| !note.applies))
            .map(|switch| switch.name)
            .collect()
    }

    fn said(switches: &Switches, dialect: Dialect, name: &str) -> String {
        let board = switchboard(switches, dialect, &[]);
        let switch = board.into_iter().find(|switch| switch.name == name);
        switch
            .and_then(|switch| switch.note)
            .map_or_else(String::new, |note| note.text)
    }

    #[test]
    fn leases_make_every_switch_matter() {
        for lock in [
            LockName::Redis,
            LockName::Redlock,
            LockName::Dynamodb,
            LockName::Table,
        ] {
            assert_eq!(
                idle(&Switches::on(lock), Dialect::Sqlite),
                Vec::<&str>::new(),
                "{lock}"
            );
        }
        // Their nodes and keys are deleted by name, each of them an attempt's own.
        let idle_under = |lock| idle(&Switches::on(lock), Dialect::Postgres);
        assert_eq!(idle_under(LockName::Etcd), ["release"]);
        // A lease there lasts as long as a session, whose own timeout says how long.
        assert_eq!(idle_under(LockName::Zookeeper), ["release", "ttl_ms"]);
        assert_eq!(
            said(
                &Switches::on(LockName::Zookeeper),
                Dialect::Postgres,
                "ttl_ms"
            ),
            "No effect with this lock: the lease is the session's time."
        );
    }

    #[test]
    fn systems_that_wake_nobody_say_so() {
        for lock in [LockName::Redlock, LockName::Dynamodb] {
            assert_eq!(
                said(&Switches::on(lock), Dialect::Postgres, "waiting"),
                format!("{lock} wakes nobody: both ask again and again.")
            );
        }
    }

    #[test]
    fn a_mutex_and_rows_have_no_token_and_no_lease() {
        let mutex = Switches::on(LockName::Mutex);
        let without_lease = ["fencing", "release", "ttl_ms", "renew"];
        assert_eq!(idle(&mutex, Dialect::Sqlite), without_lease);
        let row = Switches::on(LockName::Row);
        let on_postgres = ["fencing", "release", "waiting", "ttl_ms", "renew"];
        assert_eq!(idle(&row, Dialect::Postgres), on_postgres);
        assert!(idle(&row, Dialect::Sqlite).contains(&"order"));
        assert!(said(&row, Dialect::Sqlite, "order").contains("both transfers succeed"));
        assert!(said(&row, Dialect::Postgres, "order").contains("the rows are the locks"));
    }

    #[test]
    fn without_locking_only_compare_and_work_are_left() {
        let mut switches = Switches::on(LockName::Redis);
        switches.locking = false;
        let idle = idle(&switches, Dialect::Sqlite);
        let matters = ["locking", "compare", "think_ms"];
        assert_eq!(idle.len(), 11 - matters.len());
        assert!(matters.iter().all(|name| !idle.contains(name)));
    }

    #[test]
    fn a_lease_shorter_than_three_times_the_work_is_hinted_at() {
        let mut switches = Switches::on(LockName::Redis);
        switches.think_ms = 667;
        assert_eq!(
            said(&switches, Dialect::Sqlite, "ttl_ms"),
            "A lease should last at least 3 × the work, that is 2.001 s."
        );
        switches.think_ms = 666;
        assert_eq!(said(&switches, Dialect::Sqlite, "ttl_ms"), "");
        let etcd = Switches {
            ttl_ms: 1000,
            ..Switches::on(LockName::Etcd)
        };
        assert_eq!(
            said(&etcd, Dialect::Sqlite, "ttl_ms"),
            "etcd raises it to 2 s."
        );
    }
}
