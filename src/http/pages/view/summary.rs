//! The switches in a few words, beside the toggle.

use super::words::seconds;
use crate::lock::LockName;
use crate::room::{Fencing, Order, Release, Switches};

/// The switches in a few words.
#[derive(Debug)]
pub struct Summary {
    /// Whether locking is on.
    pub locking: bool,
    /// Which lock, and how long it is held.
    pub lock: String,
    /// Why the lock cannot be had on this replica.
    pub missing: Option<String>,
    /// The other switches that matter now.
    pub chips: Vec<Chip>,
}

/// A switch in a few words.
#[derive(Debug, PartialEq, Eq)]
pub struct Chip {
    /// Its words.
    pub text: String,
    /// Whether a protection is switched off or weakened.
    pub off: bool,
}

impl Summary {
    /// Of the switches, and why their lock system cannot be had here.
    pub fn new(switches: &Switches, missing: Option<String>) -> Self {
        Self {
            locking: switches.locking,
            lock: lock(switches),
            missing: missing.filter(|_| switches.locking),
            chips: chips(switches),
        }
    }
}

fn lock(switches: &Switches) -> String {
    let name = switches.lock;
    if !switches.locking {
        return format!("no attempt takes a lock; {name} waits to be switched on");
    }
    match name {
        LockName::Mutex => "mutex · one for each replica".to_owned(),
        LockName::Row => "row · held until the transaction ends".to_owned(),
        _ => {
            let renewal = if switches.renew {
                "renewed"
            } else {
                "not renewed"
            };
            format!("{name} · lease{} · {renewal}", lease(switches))
        }
    }
}

/// As long as it was set to, or longer where the system has a minimum.
fn lease(switches: &Switches) -> String {
    let guarantees = switches.lock.guarantees();
    match guarantees.minimum_ttl_ms {
        _ if !guarantees.ttl_applies => ": the session's".to_owned(),
        Some(minimum) => format!(" at least {}", seconds(switches.ttl_ms.max(minimum))),
        None => format!(" {}", seconds(switches.ttl_ms)),
    }
}

fn chips(switches: &Switches) -> Vec<Chip> {
    let guarantees = switches.lock.guarantees();
    let has_token = switches.locking && guarantees.token.is_some();
    let mut chips = Vec::new();
    let mut say = |text: String, off| chips.push(Chip { text, off });
    match switches.fencing {
        Fencing::Off => say("fence: off".to_owned(), true),
        _ if !has_token => say("fence: no token to check".to_owned(), false),
        Fencing::OnWrite => say("fence: on write only".to_owned(), true),
        Fencing::FromFirstRead => say("fence: from first read".to_owned(), false),
    }
    let compare = if switches.compare { "on" } else { "off" };
    say(format!("compare: {compare}"), false);
    if switches.locking {
        match switches.order {
            Order::Sorted => say("order: sorted".to_owned(), false),
            Order::AsGiven => say("order: as given".to_owned(), true),
        }
        if guarantees.blind_release_applies && switches.release == Release::Blind {
            say("release: blind".to_owned(), true);
        }
    }
    say(format!("think {}", seconds(switches.think_ms)), false);
    chips
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(switches: &Switches) -> Vec<String> {
        let chips = chips(switches).into_iter();
        chips
            .filter(|chip| chip.off)
            .map(|chip| chip.text)
            .collect()
    }

    #[test]
    fn what_weakens_the_protection_is_marked() {
        let safe = Switches::on(LockName::Redis);
        assert_eq!(off(&safe), Vec::<String>::new());
        let weak = Switches {
            fencing: Fencing::OnWrite,
            order: Order::AsGiven,
            release: Release::Blind,
            ..safe
        };
        assert_eq!(
            off(&weak),
            ["fence: on write only", "order: as given", "release: blind"]
        );
        let row = Switches {
            lock: LockName::Row,
            ..weak
        };
        assert_eq!(
            off(&row),
            ["order: as given"],
            "row has no token and no key"
        );
    }

    #[test]
    fn the_lock_is_said_with_what_it_has() {
        let mut switches = Switches::on(LockName::Redis);
        assert_eq!(lock(&switches), "redis · lease 2 s · renewed");
        switches.lock = LockName::Zookeeper;
        assert_eq!(
            lock(&switches),
            "zookeeper · lease: the session's · renewed"
        );
        switches.lock = LockName::Etcd;
        switches.ttl_ms = 1000;
        assert_eq!(lock(&switches), "etcd · lease at least 2 s · renewed");
        switches.lock = LockName::Row;
        assert_eq!(lock(&switches), "row · held until the transaction ends");
    }
}
