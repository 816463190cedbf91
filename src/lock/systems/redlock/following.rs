//! Which grants have nodes that answered late and still follow: they get the key and the token in the background.
//!
//! A lock can be given back while they do, and at a late node the release can overtake the ask, as when the node must be
//! told the script of the ask first, or is reached over another connection. Whoever follows asks here whether the claim
//! is still wanted, and gives it back otherwise.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
};

use super::node::Request;
use crate::lock::{claim::Owner, unpoisoned};

/// The asks with late nodes, by their owners.
#[derive(Debug, Default)]
pub(super) struct Following(Mutex<HashMap<Owner, BTreeSet<u64>>>);

impl Following {
    pub(super) fn begin(&self, request: &Request) {
        let mut asks = unpoisoned::lock(&self.0);
        asks.entry(request.owner).or_default().insert(request.ask);
    }

    /// Whether nobody has given back what this ask got.
    pub(super) fn is_wanted(&self, request: &Request) -> bool {
        let asks = unpoisoned::lock(&self.0);
        asks.get(&request.owner)
            .is_some_and(|asks| asks.contains(&request.ask))
    }

    /// The owner gives back what all its asks got.
    pub(super) fn give_back(&self, owner: Owner) {
        unpoisoned::lock(&self.0).remove(&owner);
    }

    /// All nodes have answered.
    pub(super) fn end(&self, request: &Request) {
        let mut asks = unpoisoned::lock(&self.0);
        if let Some(numbers) = asks.get_mut(&request.owner) {
            numbers.remove(&request.ask);
            if numbers.is_empty() {
                asks.remove(&request.owner);
            }
        }
    }
}
