//! One claim before all nodes: all are asked at once, and as soon as the outcome is certain, that is it.
//!
//! What is still under way then goes on in the background. After a grant, the nodes that answer late take the token as
//! well, so that the lock stands on all nodes and not on a bare majority; if it was given back meanwhile, they are told
//! so once more. After anything else, whatever was set is freed again, at each node as soon as its answer has come;
//! only a clear refusal needs no such request.
//!
//! It promises an outcome at the given time at the latest. It does not promise that a node that hangs is free of the
//! key before its lease is over.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::{Instant, timeout_at};

use super::{
    Absences, Answers, Nodes,
    following::Following,
    node::{Absence, Blocked, Request},
    quorum::{Quorum, Step, Vote, majority},
    withdrawing::withdraw,
};
use crate::lock::claim::Token;

/// How a claim ends.
pub(super) enum Asked {
    Granted(Token),
    Refused(Blocked),
    /// A majority does not vote. These nodes said why.
    Unavailable(Absences),
    /// A majority has granted it, but too late for the lease to be worth anything.
    TooLate,
}

/// A node's vote, and what it adds to a refusal.
type Ballot = (Vote, Option<Blocked>);

struct Asking {
    nodes: Nodes,
    request: Arc<Request>,
    quorum: Quorum,
    answers: Answers<Ballot>,
    /// The nodes whose answers are under way, waited for or not.
    under_way: BTreeSet<usize>,
    /// The nodes that may have a key of the claim. One at which a key has lapsed may still have another.
    touched: BTreeSet<usize>,
    blocked: Option<Blocked>,
    absences: Absences,
}

/// Asks all nodes. `until` is when it must be over.
pub(super) async fn ask(
    nodes: &Nodes,
    request: Request,
    until: Instant,
    following: &Arc<Following>,
) -> Asked {
    let mut asking = Asking::new(nodes.clone(), Arc::new(request));
    let outcome = asking.run(until).await;
    match outcome {
        Asked::Granted(token) => asking.let_late_nodes_follow(token, following.clone()),
        _ => asking.withdraw(),
    }
    outcome
}

impl Asking {
    fn new(nodes: Nodes, request: Arc<Request>) -> Self {
        let mut asking = Self {
            quorum: Quorum::new(nodes.len()),
            nodes,
            request,
            answers: FuturesUnordered::new(),
            under_way: BTreeSet::new(),
            touched: BTreeSet::new(),
            blocked: None,
            absences: Absences::new(),
        };
        for node in 0..asking.nodes.len() {
            asking.send_ask(node);
        }
        asking
    }

    async fn run(&mut self, until: Instant) -> Asked {
        let mut patience_ends = self.patience_ends(until);
        loop {
            match self.quorum.next_step() {
                Step::Wait if self.only_the_silent_are_missing() => self.quorum.give_up_waiting(),
                Step::Wait => match timeout_at(patience_ends, self.answers.next()).await {
                    Ok(Some(answer)) => self.hear(answer),
                    Ok(None) | Err(_) => self.quorum.give_up_waiting(),
                },
                Step::Write { .. } | Step::Granted(_) if Instant::now() >= until => {
                    return Asked::TooLate;
                }
                Step::Write { token, nodes } => {
                    nodes
                        .into_iter()
                        .for_each(|node| self.send_write(node, token));
                    patience_ends = self.patience_ends(until);
                }
                Step::Granted(token) => return Asked::Granted(token),
                Step::Refused => return Asked::Refused(self.blocked()),
                Step::Unavailable => return Asked::Unavailable(std::mem::take(&mut self.absences)),
            }
        }
    }

    fn patience_ends(&self, until: Instant) -> Instant {
        (Instant::now() + self.request.patience.answer).min(until)
    }

    /// Nodes that did not answer last time are asked, but nobody waits for them, unless they are so many that the
    /// others do not matter.
    fn only_the_silent_are_missing(&self) -> bool {
        let silent = self.nodes.iter().filter(|node| node.is_silent()).count();
        self.nodes.len() - silent >= majority(self.nodes.len())
            && self
                .quorum
                .waited_for()
                .all(|node| self.nodes[node].is_silent())
    }

    /// A claim whose keys lapsed between the phases was refused by nobody in particular.
    fn blocked(&mut self) -> Blocked {
        self.blocked.take().unwrap_or_else(|| Blocked {
            key: self.request.keys.first().clone(),
            rest: None,
        })
    }

    fn hear(&mut self, (node, answer): (usize, Result<Ballot, Absence>)) {
        self.under_way.remove(&node);
        let vote = match answer {
            Ok((vote, blocked)) => {
                self.blocked = self.blocked.take().or(blocked);
                if matches!(vote, Vote::Taken { .. }) {
                    self.touched.remove(&node);
                }
                vote
            }
            Err(absence) => {
                self.absences.insert(node, absence);
                Vote::Silent
            }
        };
        self.quorum.hear(node, vote);
    }

    fn send_ask(&mut self, node: usize) {
        self.under_way.insert(node);
        self.touched.insert(node);
        let (at, request) = (self.nodes[node].clone(), self.request.clone());
        self.answers
            .push(Box::pin(async move { (node, at.ask(&request).await) }));
    }

    fn send_write(&mut self, node: usize, token: Token) {
        self.under_way.insert(node);
        let (at, request) = (self.nodes[node].clone(), self.request.clone());
        self.answers.push(Box::pin(async move {
            let vote = at.write(&request, token).await;
            (node, vote.map(|vote| (vote, None)))
        }));
    }

    fn let_late_nodes_follow(mut self, token: Token, following: Arc<Following>) {
        if self.answers.is_empty() {
            return;
        }
        following.begin(&self.request);
        tokio::spawn(async move {
            while let Some((node, answer)) = self.answers.next().await {
                let granted = matches!(answer, Ok((Vote::Granted { .. }, _)));
                if !following.is_wanted(&self.request) {
                    if granted || answer.is_err() {
                        let (node, request) = (self.nodes[node].clone(), self.request.clone());
                        tokio::spawn(async move { node.withdraw(&request).await });
                    }
                } else if granted {
                    self.send_write(node, token);
                }
            }
            following.end(&self.request);
        });
    }

    fn withdraw(self) {
        if self.touched.is_empty() {
            return;
        }
        let at_once: Vec<_> = self.touched.difference(&self.under_way).copied().collect();
        withdraw(
            self.nodes,
            self.request,
            at_once.into_iter(),
            self.answers,
            |answer| !matches!(answer, Ok((Vote::Taken { .. }, _))),
        );
    }
}
