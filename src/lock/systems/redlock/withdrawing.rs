//! Freeing nodes of what nobody wants any more, in the background.
//!
//! It does not promise that a node hears of it. One that does not keeps the key until its lease is over, and so does one
//! at which an ask arrives after all of this, as over a connection that was given up.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream::FuturesUnordered};

use super::{
    Answers, Nodes,
    node::{Absence, Request},
};

/// Frees these nodes at once, and others as soon as they have answered what is under way and may have the key.
pub(super) fn withdraw<T: Send + 'static>(
    nodes: Nodes,
    request: Arc<Request>,
    at_once: impl Iterator<Item = usize>,
    mut answers: Answers<T>,
    may_have_it: impl Fn(&Result<T, Absence>) -> bool + Send + 'static,
) {
    let withdraw = move |node: usize| {
        let (node, request) = (nodes[node].clone(), request.clone());
        async move { node.withdraw(&request).await }
    };
    let mut withdrawals: FuturesUnordered<_> = at_once.map(&withdraw).collect();
    if withdrawals.is_empty() && answers.is_empty() {
        return;
    }
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Some((node, answer)) = answers.next() => {
                    if may_have_it(&answer) {
                        withdrawals.push(withdraw(node));
                    }
                }
                Some(()) = withdrawals.next() => {}
                else => return,
            }
        }
    });
}
