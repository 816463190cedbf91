//! The name that the nodes of a Redlock have in common, so that replicas can notice that they use different ones.
//!
//! A majority of the nodes has it. It is drawn when no majority has one: the nodes are new, or so many have lost their
//! memory that it counts as a new lock server. Two replicas that draw at the same time overwrite each other until a
//! majority agrees; whoever compares meanwhile is told to come back.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;

use super::{
    Absences, Answers, Failure, Nodes, ask_all, no_majority,
    node::{Absence, Mark},
    quorum::majority,
    unavailable,
};

/// What the nodes said when they were asked for their names.
struct Names {
    names: Vec<Option<String>>,
    absences: Absences,
}

/// The name of the Redlock; `draw` if it has none.
pub(super) async fn name(nodes: &Nodes, mark: Mark, draw: &str) -> Result<String, Failure> {
    let names = read(nodes, &mark).await?;
    if let Some(name) = names.of_a_majority(nodes) {
        if names.names.iter().flatten().count() < names.names.len() {
            // A node that was away when it was drawn.
            write(nodes, &mark, &name, false).await?;
        }
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
    let names = write(nodes, &mark, draw, true).await?;
    names.of_a_majority(nodes).ok_or_else(|| {
        Failure::Unavailable(unavailable(
            nodes,
            "the nodes are being named; try again",
            &names.absences,
        ))
    })
}

async fn read(nodes: &Nodes, mark: &Mark) -> Result<Names, Failure> {
    let answers = ask_all(nodes, |node| {
        let mark = mark.clone();
        async move { node.name(&mark).await }
    });
    Names::hear(nodes, answers).await
}

async fn write(nodes: &Nodes, mark: &Mark, name: &str, anyhow: bool) -> Result<Names, Failure> {
    let answers = ask_all(nodes, |node| {
        let (mark, name) = (mark.clone(), name.to_owned());
        async move { node.set_name(&mark, &name, anyhow).await }
    });
    Names::hear(nodes, answers).await
}

impl Names {
    /// Waits for all nodes. A node of another Redlock means that this one was put together wrongly, and two halves
    /// might be used as two locks; so it is an error even if a majority is right.
    async fn hear(nodes: &Nodes, mut answers: Answers<Option<String>>) -> Result<Self, Failure> {
        let (mut names, mut absences) = (Vec::new(), Absences::new());
        while let Some((node, answer)) = answers.next().await {
            match answer {
                Ok(name) => names.push(name),
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

    /// The name that most have, and how many.
    fn most(&self) -> Option<(&String, usize)> {
        let mut counts = BTreeMap::new();
        for name in self.names.iter().flatten() {
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
