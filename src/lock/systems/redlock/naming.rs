//! The name that the nodes of a Redlock have in common, so that replicas can notice that they use different ones.
//!
//! A majority of the nodes has it. It is drawn when no majority has one: the nodes are new, or so many have lost their
//! memory that it counts as a new lock server. Of replicas that draw at the same time, the first one at a node names it:
//! nobody replaces a name that it has not seen, nor any while there are nodes without one, so one that a majority has
//! stays. When no majority has one yet, whoever compares is told to come back.
//!
//! Whoever finds what a majority is called calls the other nodes the same: those that were away, that were admitted
//! again, or that somebody else named at the same time. Else the majority would depend on the same nodes for ever.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;

use super::{
    Absences, Answers, Failure, Nodes, ask_all, ask_each, no_majority,
    node::{Absence, Mark},
    quorum::majority,
    unavailable,
};

/// What the nodes said when they were asked for their names.
struct Names {
    /// By the number of the node.
    names: BTreeMap<usize, Option<String>>,
    absences: Absences,
}

/// The name of the Redlock; `draw` if it has none.
pub(super) async fn name(nodes: &Nodes, mark: Mark, draw: &str) -> Result<String, Failure> {
    let names = read(nodes, &mark).await?;
    if let Some(name) = names.spread(nodes, &mark).await? {
        return Ok(name);
    }
    if names.may_be_of_a_majority(nodes) {
        let what = "too few nodes answer to tell their name";
        return Err(Failure::Unavailable(unavailable(
            nodes,
            what,
            &names.absences,
        )));
    }
    let names = write(nodes, &mark, draw, |node| names.replaceable(node)).await?;
    names.spread(nodes, &mark).await?.ok_or_else(|| {
        Failure::Unavailable(unavailable(
            nodes,
            "the nodes are being named; try again",
            &names.absences,
        ))
    })
}

/// Gives the name that a majority has to all other nodes; none, if no majority has one.
pub(super) async fn spread(nodes: &Nodes, mark: &Mark) -> Result<(), Failure> {
    read(nodes, mark).await?.spread(nodes, mark).await?;
    Ok(())
}

async fn read(nodes: &Nodes, mark: &Mark) -> Result<Names, Failure> {
    let answers = ask_all(nodes, |node| {
        let mark = mark.clone();
        async move { node.name(&mark).await }
    });
    Names::hear(nodes, answers).await
}

/// Gives this name to each node that still has the one that was seen there.
async fn write(
    nodes: &Nodes,
    mark: &Mark,
    name: &str,
    seen: impl Fn(usize) -> Option<String>,
) -> Result<Names, Failure> {
    let answers = ask_each(nodes, |number, node| {
        let (mark, name, seen) = (mark.clone(), name.to_owned(), seen(number));
        async move { node.set_name(&mark, &name, seen.as_deref()).await }
    });
    Names::hear(nodes, answers).await
}

impl Names {
    /// Waits for all nodes. A node of another Redlock means that this one was put together wrongly, and two halves
    /// might be used as two locks; so it is an error even if a majority is right.
    async fn hear(nodes: &Nodes, mut answers: Answers<Option<String>>) -> Result<Self, Failure> {
        let (mut names, mut absences) = (BTreeMap::new(), Absences::new());
        while let Some((node, answer)) = answers.next().await {
            match answer {
                Ok(name) => {
                    names.insert(node, name);
                }
                Err(absence) => {
                    absences.insert(node, absence);
                }
            }
        }
        if names.len() < majority(nodes.len()) {
            return Err(no_majority(nodes, &absences));
        }
        if absences
            .values()
            .any(|absence| *absence == Absence::Foreign)
        {
            let what = "the nodes belong to different Redlocks";
            return Err(Failure::Unavailable(unavailable(nodes, what, &absences)));
        }
        Ok(Self { names, absences })
    }

    /// Gives the name that a majority has to the others, and tells it.
    async fn spread(&self, nodes: &Nodes, mark: &Mark) -> Result<Option<String>, Failure> {
        let Some(name) = self.of_a_majority(nodes) else {
            return Ok(None);
        };
        if self.names.values().any(|one| one.as_ref() != Some(&name)) {
            write(nodes, mark, &name, |node| self.of(node)).await?;
        }
        Ok(Some(name))
    }

    /// What a draw may replace at this node: `None` is no name. While there are nodes without one, the name that a few
    /// have can still become that of a majority.
    fn replaceable(&self, node: usize) -> Option<String> {
        let all_are_named = self.names.values().all(Option::is_some);
        self.of(node).filter(|_| all_are_named)
    }

    /// What this node said.
    fn of(&self, node: usize) -> Option<String> {
        self.names.get(&node).cloned().flatten()
    }

    /// The name that most have, and how many.
    fn most(&self) -> Option<(&String, usize)> {
        let mut counts = BTreeMap::new();
        for name in self.names.values().flatten() {
            *counts.entry(name).or_insert(0) += 1;
        }
        counts.into_iter().max_by_key(|&(_, count)| count)
    }

    fn of_a_majority(&self, nodes: &Nodes) -> Option<String> {
        let (name, count) = self.most()?;
        (count >= majority(nodes.len())).then(|| name.clone())
    }

    /// Whether the silent nodes can make it one.
    fn may_be_of_a_majority(&self, nodes: &Nodes) -> bool {
        let silent = nodes.len() - self.names.len();
        self.most()
            .is_some_and(|(_, count)| count + silent >= majority(nodes.len()))
    }
}
