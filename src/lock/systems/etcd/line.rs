//! The transactions that stand a claim in the line of a lock, look where it stands, and take it out.
//!
//! The keys in the folder of a lock are its line, in the order in which they were created. Who was created first holds
//! the lock, and the revision of that creation is the token. A claim hangs on a lease: when that ends, its keys are
//! gone.
//!
//! A request whose answer was lost may be carried out much later, after the claim was taken out of the line, and then
//! nobody would know of the key that it leaves behind. So each request carries the version of the session's *barrier*;
//! taking out a claim that has such a request raises it, and the late request does nothing.

use etcd_client::{
    Compare, CompareOp, GetOptions, PutOptions, ResponseHeader, SortOrder, SortTarget, Txn, TxnOp,
    TxnOpResponse, TxnResponse,
};
use tokio::time::Instant;

use super::{
    claims::Claims,
    link::{Failure, Link, Repeat},
    names,
    session::Session,
};
use crate::lock::claim::Claim;

/// How many keys one claim may name. A transaction of etcd has at most 128 comparisons and 128 operations, and each
/// key needs two. (`--max-txn-ops`.)
pub(super) const MOST_KEYS: usize = 60;

/// Where a claim stands at each of its keys: the revision of its creation, where it stands at all.
pub(super) type Places = Vec<Option<i64>>;

/// What an ask found.
#[derive(Debug)]
pub(super) enum Found {
    /// It is first at all its keys.
    First(Vec<i64>),
    /// Somebody is before it at this key.
    Behind { key: usize, places: Places },
    /// Things changed meanwhile: ask again, knowing this.
    Changed(Places),
    /// The barrier was raised: ask again with this version.
    TooLate(i64),
}

/// One request under one session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) link: &'a Link,
    pub(super) claims: &'a Claims,
    pub(super) claim: &'a Claim,
    /// What its keys are called.
    pub(super) name: &'a str,
    pub(super) session: &'a Session,
    pub(super) until: Instant,
}

impl Request<'_> {
    /// Asks for all keys, knowing where the claim stands.
    pub(super) async fn ask(self, known: &Places) -> Result<Found, Failure> {
        if self.claim.keys.count() == 1 {
            return self.stand(0, known).await;
        }
        match self.take_all(known).await? {
            Found::Behind { key, places } if !stands_only_at(key, &places) => {
                self.stand(key, &places).await
            }
            found => Ok(found),
        }
    }

    /// Stands in the line of one key, if the claim does not yet, and in no other line.
    async fn stand(self, key: usize, known: &Places) -> Result<Found, Failure> {
        // The first put is not asked whether it is needed: repeated, it changes nothing of where the claim stands. It
        // tells what was there, which costs the server less than another read.
        let put = match known[key] {
            None => TxnOp::put(
                self.place(key),
                "",
                self.on_lease().map(PutOptions::with_prev_key),
            ),
            Some(_) => self.put(key),
        };
        let mut steps = vec![put, TxnOp::get(self.folder(key), Some(first_in_line()))];
        if known[key].is_some() {
            steps.push(self.get_own(key));
        }
        // Carried out late, it must not take away what the claim holds by then.
        let elsewhere = (0..known.len()).filter(|&other| other != key && known[other].is_some());
        steps.extend(elsewhere.map(|other| TxnOp::txn(self.delete(other, known[other]))));
        let (answers, revision) = match self.send(steps).await? {
            Read::Then { answers, revision } => (answers, revision),
            Read::TooLate(version) => return Ok(Found::TooLate(version)),
            Read::Else(_) => return Err(nonsense()),
        };
        let own = match answers.as_slice() {
            [TxnOpResponse::Put(put), ..] => {
                let earlier = put.prev_key().map(|place| place.create_revision());
                Some(earlier.unwrap_or(revision))
            }
            [_, _, own, ..] => created(own),
            _ => None,
        };
        let (Some(own), Some(Some(first))) = (own, answers.get(1).map(created)) else {
            return Err(nonsense());
        };
        let mut places = vec![None; known.len()];
        places[key] = Some(own);
        Ok(if own != first {
            Found::Behind { key, places }
        } else if places.len() == 1 {
            Found::First(vec![own])
        } else {
            Found::Changed(places)
        })
    }

    /// Takes all keys if nobody is before the claim at any of them; else changes nothing.
    async fn take_all(self, known: &Places) -> Result<Found, Failure> {
        let keys = 0..known.len();
        let free = keys.clone().flat_map(|key| self.is_free(key, known[key]));
        let take = keys
            .clone()
            .flat_map(|key| [self.put(key), self.get_own(key)]);
        let look = keys.clone().flat_map(|key| {
            let first = TxnOp::get(self.folder(key), Some(first_in_line()));
            [self.get_own(key), first]
        });
        let if_free = Txn::new()
            .when(free.collect::<Vec<_>>())
            .and_then(take.collect::<Vec<_>>())
            .or_else(look.collect::<Vec<_>>());
        match self.send(vec![TxnOp::txn(if_free)]).await?.of_branch()? {
            Read::TooLate(version) => Ok(Found::TooLate(version)),
            Read::Then { answers, .. } => {
                let own = answers.iter().skip(1).step_by(2).map(created);
                own.collect::<Option<Vec<i64>>>()
                    .filter(|own| own.len() == known.len())
                    .map(Found::First)
                    .ok_or_else(nonsense)
            }
            Read::Else(answers) => {
                let created: Vec<Option<i64>> = answers.iter().map(created).collect();
                let lines: Vec<&[Option<i64>]> = created.chunks_exact(2).collect();
                if lines.len() != known.len() {
                    return Err(nonsense());
                }
                let places = lines.iter().map(|line| line[0]).collect();
                let refused = lines.iter().position(|line| line[1] != line[0]);
                Ok(match refused {
                    Some(key) => Found::Behind { key, places },
                    None => Found::Changed(places),
                })
            }
        }
    }

    /// Whether the claim still stands exactly where it stood.
    pub(super) async fn stands(self, places: &Places) -> Result<bool, Failure> {
        // Reads, so that it is no write at the server, and linearizable ones, which comparisons alone would not be.
        let looks = (0..places.len()).map(|key| self.get_own(key));
        let txn = Txn::new().and_then(looks.collect::<Vec<_>>());
        let read = self.link.txn(&txn, self.until, Repeat::AtEachMember).await;
        let found: Places = read.answer?.op_responses().iter().map(created).collect();
        Ok(found == *places && found.iter().all(Option::is_some))
    }

    /// Takes the claim out of the line of all its keys, and says whether it stood in all of them. `in_doubt` when a
    /// request for it may yet be carried out.
    pub(super) async fn leave(self, places: &Places, in_doubt: bool) -> Result<bool, Failure> {
        let deletions: Vec<Txn> = (0..places.len())
            .map(|key| match in_doubt {
                // A request without an answer may have put it anew.
                true => self.delete_whatever_stands(key, places[key]),
                false => self.delete(key, places[key]),
            })
            .collect();
        let keep_out = in_doubt && !self.session.is_over();
        match self.take_out(&deletions, keep_out).await {
            // The barrier hangs on the lease; without it, nothing late can be carried out anyway.
            Err(Failure::NoLease) if keep_out => {
                self.session.end();
                self.take_out(&deletions, false).await
            }
            answer => answer,
        }
    }

    async fn take_out(self, deletions: &[Txn], keep_out: bool) -> Result<bool, Failure> {
        if let ([deletion], false) = (deletions, keep_out) {
            // Flat, which costs the server less than a transaction within another.
            let taken = self.link.txn(deletion, self.until, Repeat::Never).await;
            return Ok(taken.answer?.succeeded());
        }
        self.take_out_together(deletions, keep_out).await
    }

    async fn take_out_together(self, deletions: &[Txn], keep_out: bool) -> Result<bool, Failure> {
        let keys = deletions.len();
        let mut steps: Vec<TxnOp> = deletions.iter().cloned().map(TxnOp::txn).collect();
        if keep_out {
            let barrier = names::barrier(self.session.lease);
            steps.push(TxnOp::put(barrier.clone(), "", self.on_lease()));
            steps.push(TxnOp::get(barrier, None));
        }
        let txn = Txn::new().and_then(steps);
        let taken = self.link.txn(&txn, self.until, Repeat::Never).await;
        let answers = taken.answer?.op_responses();
        if let Some(version) = answers.get(keys + 1).and_then(version) {
            self.session.raise_barrier(version);
        }
        let left = answers.iter().take(keys);
        Ok(left.filter(|answer| succeeded(answer)).count() == keys)
    }

    /// Sends what is asked on this side of the barrier.
    async fn send(self, steps: Vec<TxnOp>) -> Result<Read, Failure> {
        let barrier = names::barrier(self.session.lease);
        let is_low = Compare::version(barrier.clone(), CompareOp::Equal, self.session.barrier());
        let txn = Txn::new()
            .when([is_low])
            .and_then(steps)
            .or_else([TxnOp::get(barrier, None)]);
        let reply = self.link.txn(&txn, self.until, Repeat::AtEachMember).await;
        // Also when the repeat was refused.
        if reply.in_doubt {
            self.claims.doubt(self.claim.owner);
        }
        read(&reply.answer?)
    }

    fn folder(&self, key: usize) -> String {
        names::folder(&self.claim.keys[key])
    }

    fn place(&self, key: usize) -> String {
        names::place(&self.claim.keys[key], self.name)
    }

    fn on_lease(&self) -> Option<PutOptions> {
        Some(PutOptions::new().with_lease(self.session.lease))
    }

    /// Puts the claim at the end of a line, or, where it stands in it already, hangs it on this lease.
    fn put(&self, key: usize) -> TxnOp {
        let place = self.place(key);
        let lease = Compare::lease(place.clone(), CompareOp::Equal, self.session.lease);
        let put = TxnOp::put(place, "", self.on_lease());
        TxnOp::txn(Txn::new().when([lease]).or_else([put]))
    }

    fn get_own(&self, key: usize) -> TxnOp {
        TxnOp::get(self.place(key), None)
    }

    /// Deletes the claim's key if it is the one that stood there.
    fn delete(&self, key: usize, stood: Option<i64>) -> Txn {
        let place = self.place(key);
        let stands = match stood {
            // A repeat must not free what was created since. (etcd#22082.)
            Some(created) => Compare::create_revision(place.clone(), CompareOp::Equal, created),
            None => Compare::create_revision(place.clone(), CompareOp::Greater, 0),
        };
        let delete = TxnOp::delete(place, None);
        Txn::new().when([stands]).and_then([delete])
    }

    /// Deletes the claim's key also if another one stands there now, and tells the two apart. Only for a name that is
    /// not used again.
    fn delete_whatever_stands(&self, key: usize, stood: Option<i64>) -> Txn {
        let delete = TxnOp::delete(self.place(key), None);
        self.delete(key, stood).or_else([delete])
    }

    /// Nobody stands in the line, or this claim does and nobody before it.
    fn is_free(&self, key: usize, stands: Option<i64>) -> Vec<Compare> {
        let line = self.folder(key);
        let Some(own) = stands else {
            return vec![Compare::create_revision(line, CompareOp::Equal, 0).with_prefix()];
        };
        vec![
            Compare::create_revision(self.place(key), CompareOp::Equal, own),
            Compare::create_revision(line, CompareOp::Greater, own - 1).with_prefix(),
        ]
    }
}

fn stands_only_at(key: usize, places: &Places) -> bool {
    let mut all = places.iter().enumerate();
    all.all(|(other, place)| place.is_some() == (other == key))
}

fn first_in_line() -> GetOptions {
    GetOptions::new()
        .with_prefix()
        .with_sort(SortTarget::Create, SortOrder::Ascend)
        .with_limit(1)
        .with_keys_only()
}

/// What a request behind the barrier answered.
enum Read {
    Then {
        answers: Vec<TxnOpResponse>,
        /// Of the cluster: when what was put was created, if it was not there before.
        revision: i64,
    },
    Else(Vec<TxnOpResponse>),
    TooLate(i64),
}

impl Read {
    /// Of a request that was a branch: what was answered in it.
    fn of_branch(self) -> Result<Self, Failure> {
        match self {
            Self::Then { answers, revision } => match answers.as_slice() {
                [TxnOpResponse::Txn(branch)] if branch.succeeded() => Ok(Self::Then {
                    answers: branch.op_responses(),
                    revision,
                }),
                [TxnOpResponse::Txn(branch)] => Ok(Self::Else(branch.op_responses())),
                _ => Err(nonsense()),
            },
            read => Ok(read),
        }
    }
}

fn read(answer: &TxnResponse) -> Result<Read, Failure> {
    let answers = answer.op_responses();
    let revision = answer.header().map(ResponseHeader::revision);
    match (answer.succeeded(), answers.as_slice()) {
        (true, _) => Ok(Read::Then {
            answers,
            revision: revision.ok_or_else(nonsense)?,
        }),
        (false, [barrier]) => match version(barrier).ok_or_else(nonsense)? {
            // It was raised before, or this would not have failed. It is gone, so is the lease that it hung on.
            0 => Err(Failure::NoLease),
            version => Ok(Read::TooLate(version)),
        },
        (false, _) => Err(nonsense()),
    }
}

/// When the key that was read first was created; `None` when there is none.
fn created(answer: &TxnOpResponse) -> Option<i64> {
    match answer {
        TxnOpResponse::Get(read) => Some(read.kvs().first()?.create_revision()),
        _ => None,
    }
}

/// The version of the key that was read; 0 when there is none.
fn version(answer: &TxnOpResponse) -> Option<i64> {
    match answer {
        TxnOpResponse::Get(read) => Some(read.kvs().first().map_or(0, |key| key.version())),
        _ => None,
    }
}

fn succeeded(answer: &TxnOpResponse) -> bool {
    matches!(answer, TxnOpResponse::Txn(answer) if answer.succeeded())
}

fn nonsense() -> Failure {
    Failure::Answer("a transaction was answered with nonsense".to_owned())
}
