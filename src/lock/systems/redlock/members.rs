//! Which nodes may vote.
//!
//! A node that restarts without its memory has forgotten the locks and the counters that it voted for, and could vote
//! for a second holder and an old token. So each node carries a mark, which says which Redlock it belongs to. A node
//! without one is **empty**, and does not vote until it was admitted:
//!
//! 1. It has been known to be empty for longer than the longest lease that any member has seen. Then all that was
//!    granted with its vote is over, and all claims that were under way have ended.
//! 2. The records of a majority of the members, read after that, have been written to it: the counters are at least
//!    what they were when it lost them.
//!
//! When fewer than a majority have kept their memory, all nodes must answer, so that nobody knows more than they do, and
//! those that have a name for the Redlock forget it: it goes on as a lock server that was replaced. When no node has a
//! mark, as when all are new, nobody has seen a lease, and so they are admitted at once.
//!
//! Everything here may be done by any number of processes at the same time, and breaks off anywhere. It does not
//! notice a node that comes back with an *older* memory, from a snapshot or a replica, and it cannot tell an empty
//! node from another machine that took its address.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt as _, future::join_all};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    Absences, Nodes, ask_all, finish, naming,
    node::{Look, Mark},
    quorum::majority,
    unavailable,
};
use crate::lock::{claim::Owner, error::LockError, unpoisoned};

/// How often the nodes are looked at before a new Redlock is given up: found, admitted, found again.
const LOOKS: usize = 3;

/// The pause after a look at nodes that do not vote.
const PAUSE: Duration = Duration::from_millis(250);

/// Added to the longest lease: what a timer may be late.
const TIMER_MARGIN: Duration = Duration::from_millis(10);

/// Knows which Redlock this is, and admits empty nodes.
#[derive(Debug)]
pub(super) struct Members {
    nodes: Nodes,
    known: Mutex<Option<Mark>>,
    joining: tokio::sync::Mutex<()>,
    admitting: Arc<tokio::sync::Mutex<()>>,
}

/// What a look at the nodes tells.
#[derive(Debug, PartialEq, Eq)]
struct Survey {
    /// Which Redlock it is, or will be.
    mark: Mark,
    /// How many vote for it.
    members: usize,
    /// Whether that is a majority.
    is_established: bool,
    /// Empty nodes that may be admitted, with what they are called.
    ready: Vec<(usize, String)>,
    /// Empty nodes that may not be admitted yet.
    waiting: usize,
}

impl Members {
    pub(super) fn new(nodes: Nodes) -> Self {
        Self {
            nodes,
            known: Mutex::default(),
            joining: tokio::sync::Mutex::default(),
            admitting: Arc::default(),
        }
    }

    /// Which Redlock this is. Looks at the nodes if that is not known, and makes it if they are all new.
    pub(super) async fn mark(&self, until: Instant) -> Result<Mark, LockError> {
        if let Some(mark) = self.known() {
            return Ok(mark);
        }
        let joined = timeout_at(until, self.join()).await;
        joined.unwrap_or_else(|_| Err(LockError::unavailable("the nodes do not answer in time")))
    }

    /// It is not this one any more: a majority says so.
    pub(super) fn forget(&self, mark: &Mark) {
        let mut known = unpoisoned::lock(&self.known);
        if known.as_ref() == Some(mark) {
            *known = None;
        }
    }

    /// Somebody met an empty node: it is admitted as soon as it may be. In the background, by one task at a time.
    pub(super) fn look_after_empty_nodes(self: &Arc<Self>) {
        let Ok(turn) = self.admitting.clone().try_lock_owned() else {
            return;
        };
        let members = self.clone();
        tokio::spawn(async move {
            if let Err(reason) = members.admit_who_is_ready().await {
                tracing::debug!(%reason, "no Redlock node was admitted");
            }
            sleep(PAUSE).await;
            drop(turn);
        });
    }

    fn known(&self) -> Option<Mark> {
        unpoisoned::lock(&self.known).clone()
    }

    async fn join(&self) -> Result<Mark, LockError> {
        let _turn = self.joining.lock().await;
        if let Some(mark) = self.known() {
            return Ok(mark);
        }
        for _ in 0..LOOKS {
            let survey = self.look(true).await?;
            if survey.is_established {
                *unpoisoned::lock(&self.known) = Some(survey.mark.clone());
                return Ok(survey.mark);
            }
            if survey.ready.is_empty() {
                return Err(survey.too_few(self.nodes.len()));
            }
            self.admit(&survey).await?;
        }
        Err(LockError::unavailable(
            "the nodes of the Redlock lose their memory again and again",
        ))
    }

    async fn admit_who_is_ready(&self) -> Result<(), LockError> {
        let survey = self.look(false).await?;
        self.admit(&survey).await
    }

    /// Looks at all nodes; or, if only the mark is wanted, at as many as it takes.
    async fn look(&self, only_for_the_mark: bool) -> Result<Survey, LockError> {
        let mut looks = vec![None; self.nodes.len()];
        let mut absences = Absences::new();
        let mut answers = ask_all(&self.nodes, |node| async move {
            node.look(&Owner::random().to_string()).await
        });
        while let Some((node, answer)) = answers.next().await {
            match answer {
                Ok(look) => looks[node] = Some(look),
                Err(absence) => {
                    absences.insert(node, absence);
                }
            }
            if only_for_the_mark
                && let Ok(survey) = survey(&looks)
                && survey.is_established
            {
                finish(answers);
                return Ok(survey);
            }
        }
        survey(&looks).map_err(|why| unavailable(&self.nodes, &why, &absences))
    }

    /// Admits the empty nodes that are ready, with what the others remember.
    async fn admit(&self, survey: &Survey) -> Result<(), LockError> {
        if survey.ready.is_empty() {
            return Ok(());
        }
        let records = if survey.members == 0 {
            Vec::new()
        } else {
            self.remembered(survey).await?
        };
        let admissions = survey.ready.iter().map(async |(node, name)| {
            let node = &self.nodes[*node];
            match node.admit(&survey.mark, name, &records).await {
                Ok(true) => tracing::info!(
                    node = node.address(),
                    "a Redlock node without a memory was admitted"
                ),
                Ok(false) => {}
                Err(absence) => {
                    tracing::debug!(node = node.address(), %absence, "a Redlock node was not admitted");
                }
            }
        });
        join_all(admissions).await;
        naming::spread(&self.nodes, &survey.mark).await?;
        Ok(())
    }

    /// What an empty node must be told.
    async fn remembered(&self, survey: &Survey) -> Result<Vec<String>, LockError> {
        if !survey.is_established {
            self.forget_name(survey).await?;
        }
        self.records(survey).await
    }

    /// What a majority of the members remembers; all of them, if they are fewer.
    async fn records(&self, survey: &Survey) -> Result<Vec<String>, LockError> {
        let needed = majority(self.nodes.len()).min(survey.members);
        let mark = survey.mark.clone();
        let mut answers = ask_all(&self.nodes, move |node| {
            let mark = mark.clone();
            async move { node.record(&mark).await }
        });
        let (mut records, mut heard) = (Vec::new(), 0);
        while let Some((_, answer)) = answers.next().await {
            if let Ok(mut record) = answer {
                records.append(&mut record);
                heard += 1;
            }
        }
        if heard < needed {
            return Err(LockError::unavailable(format!(
                "{heard} nodes told what they remember, and it takes {needed}"
            )));
        }
        Ok(records)
    }

    /// Without a majority that remembers it is not the lock server that it was.
    async fn forget_name(&self, survey: &Survey) -> Result<(), LockError> {
        let mark = survey.mark.clone();
        let mut answers = ask_all(&self.nodes, move |node| {
            let mark = mark.clone();
            async move { node.forget_name(&mark).await }
        });
        let mut forgotten = 0;
        while let Some((_, answer)) = answers.next().await {
            forgotten += usize::from(answer.is_ok());
        }
        if forgotten < survey.members {
            return Err(LockError::unavailable(
                "a node went away while the Redlock began anew",
            ));
        }
        Ok(())
    }
}

/// What the looks tell; `None` is a node that did not answer.
///
/// # Errors
/// Why they do not tell which Redlock it is.
fn survey(looks: &[Option<Look>]) -> Result<Survey, String> {
    let mut members: BTreeMap<&Mark, usize> = BTreeMap::new();
    let mut longest = Duration::ZERO;
    let mut empty = Vec::new();
    for (node, look) in looks.iter().enumerate() {
        match look {
            Some(Look::Member {
                mark,
                longest: seen,
            }) => {
                *members.entry(mark).or_default() += 1;
                longest = longest.max(*seen);
            }
            Some(Look::Empty { name, since }) => empty.push((node, name, *since)),
            None => {}
        }
    }
    let names: BTreeSet<_> = empty.iter().map(|(_, name, _)| name).collect();
    if names.len() < empty.len() {
        return Err("two of the addresses lead to one node".to_owned());
    }

    let most = members.iter().max_by_key(|(_, count)| **count);
    let is_established = most.is_some_and(|(_, &count)| count >= majority(looks.len()));
    if !is_established {
        let answered = looks.iter().flatten().count();
        if answered < looks.len() {
            return Err(format!(
                "{answered} of {} nodes answer, and no majority of all has kept its memory",
                looks.len()
            ));
        }
        if members.len() > 1 {
            return Err("the nodes belong to different Redlocks".to_owned());
        }
    }
    // Everybody who meets the same new nodes calls their Redlock the same.
    let mark = match most {
        Some((mark, _)) => Mark::clone(mark),
        None => names
            .first()
            .map(|name| Mark::from(name.as_str()))
            .unwrap_or_default(),
    };
    let silence = silence_after(longest);
    let (ready, waiting): (Vec<_>, Vec<_>) = empty
        .into_iter()
        .partition(|(_, _, since)| silence.is_zero() || *since > silence);
    Ok(Survey {
        members: most.map_or(0, |(_, &count)| count),
        mark,
        is_established,
        ready: ready
            .into_iter()
            .map(|(node, name, _)| (node, name.clone()))
            .collect(),
        waiting: waiting.len(),
    })
}

/// How long an empty node keeps silent, by its own clock, when others have seen a lease as long as this.
fn silence_after(longest: Duration) -> Duration {
    if longest.is_zero() {
        return Duration::ZERO;
    }
    // Holders give up 1 % early, for clocks that run at different speeds; this is as much on the other side.
    longest + longest / 100 + TIMER_MARGIN
}

impl Survey {
    fn too_few(&self, nodes: usize) -> LockError {
        LockError::unavailable(format!(
            "{} of {nodes} nodes have lost their memory and do not vote until the longest lease is over",
            self.waiting
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn member(mark: &str) -> Option<Look> {
        Some(Look::Member {
            mark: mark.into(),
            longest: SECOND,
        })
    }

    fn empty(name: &str, ms: u64) -> Option<Look> {
        Some(Look::Empty {
            name: name.to_owned(),
            since: Duration::from_millis(ms),
        })
    }

    fn ready(looks: &[Option<Look>]) -> Vec<usize> {
        let survey = survey(looks).unwrap();
        survey.ready.into_iter().map(|(node, _)| node).collect()
    }

    #[test]
    fn new_nodes_are_admitted_at_once_and_everybody_calls_them_the_same() {
        let looks = ["d", "b", "c", "a", "e"].map(|name| empty(name, 0));
        let survey = survey(&looks).unwrap();
        assert_eq!((&*survey.mark, survey.is_established), ("a", false));
        assert_eq!(survey.ready.len(), 5);
    }

    #[test]
    fn all_nodes_must_answer_before_a_redlock_is_made() {
        let four = [
            empty("a", 0),
            empty("b", 0),
            empty("c", 0),
            empty("d", 0),
            None,
        ];
        assert!(survey(&four).is_err());
    }

    #[test]
    fn a_majority_of_members_is_a_redlock_whoever_is_silent() {
        let survey = survey(&[None, member("x"), member("x"), None, member("x")]).unwrap();
        assert_eq!((&*survey.mark, survey.is_established), ("x", true));
    }

    #[test]
    fn an_empty_node_keeps_silent_for_longer_than_the_longest_lease() {
        let looks = |ms| [member("x"), member("x"), member("x"), empty("a", ms), None];
        assert!(ready(&looks(1_000)).is_empty());
        assert!(ready(&looks(1_020)).is_empty());
        assert_eq!(ready(&looks(1_021)), [3]);
    }

    #[test]
    fn when_a_majority_lost_its_memory_all_must_answer() {
        let (a, b, c) = (empty("a", 2_000), empty("b", 2_000), empty("c", 0));
        let looks = [member("x"), member("x"), a.clone(), b.clone(), c];
        assert_eq!(ready(&looks), [2, 3]);
        assert!(!survey(&looks).unwrap().is_established);
        assert!(survey(&[member("x"), member("x"), a, b, None]).is_err());
    }

    #[test]
    fn nodes_of_different_redlocks_are_none() {
        let (x, y) = (member("x"), member("y"));
        let mixed = [
            x.clone(),
            x.clone(),
            y.clone(),
            y.clone(),
            empty("a", 9_000),
        ];
        assert!(survey(&mixed).unwrap_err().contains("different"));
        assert!(
            survey(&[x.clone(), x.clone(), x, y.clone(), y])
                .unwrap()
                .is_established
        );
    }

    #[test]
    fn two_addresses_of_one_node_are_noticed() {
        let looks = ["a", "a", "b"].map(|name| empty(name, 0));
        assert!(survey(&looks).unwrap_err().contains("one node"));
    }
}
