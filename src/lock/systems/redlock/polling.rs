//! A question to all nodes that they answer with yes or no: whether a lock was renewed, or freed.
//!
//! It promises what a majority says, within the patience of the request. The others are asked all the same, and their
//! answers are left to whoever asked.

use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout_at};

use super::{
    Absences, Answers, Nodes, ask_all, finish, no_majority,
    node::{Absence, Node, Request},
    quorum::{Outcome, Poll},
    withdrawing::withdraw,
};
use crate::lock::error::LockError;

/// What was answered so far.
pub(super) struct Polled {
    nodes: Nodes,
    request: Arc<Request>,
    outcome: Outcome,
    absences: Absences,
    /// Those under way.
    answers: Answers<bool>,
}

/// Asks all nodes, until it is certain what the majority says.
pub(super) async fn poll<F>(
    nodes: &Nodes,
    request: Request,
    ask: impl Fn(Arc<Node>, Arc<Request>) -> F,
) -> Polled
where
    F: Future<Output = Result<bool, Absence>> + Send + 'static,
{
    let until = Instant::now() + request.patience.answer;
    let request = Arc::new(request);
    let mut answers = ask_all(nodes, |node| ask(node, request.clone()));
    let mut poll = Poll::new(nodes.len());
    let mut absences = Absences::new();
    let outcome = loop {
        if let Some(outcome) = poll.outcome() {
            break outcome;
        }
        let Ok(Some((node, answer))) = timeout_at(until, answers.next()).await else {
            break Outcome::Unknown;
        };
        poll.hear(match answer {
            Ok(answer) => Some(answer),
            // What it has forgotten it does not hold.
            Err(Absence::Empty | Absence::Foreign) => Some(false),
            Err(absence) => {
                absences.insert(node, absence);
                None
            }
        });
    };
    Polled {
        nodes: nodes.clone(),
        request,
        outcome,
        absences,
        answers,
    }
}

impl Polled {
    /// What the majority says.
    pub(super) fn verdict(&self) -> Result<bool, LockError> {
        match self.outcome {
            Outcome::Yes => Ok(true),
            Outcome::No => Ok(false),
            Outcome::Unknown => Err(no_majority(&self.nodes, &self.absences).into()),
        }
    }

    /// Lets the others answer whom they will.
    pub(super) fn finish(self) {
        finish(self.answers);
    }

    /// Frees the lock at nodes that did not answer, too. They are asked once more, over a new connection if the old one
    /// is taken for dead.
    pub(super) fn withdraw_from_the_silent(self) {
        let silent = self.absences.into_keys();
        withdraw(self.nodes, self.request, silent, self.answers, |answer| {
            matches!(answer, Err(Absence::Silent(_)))
        });
    }
}
