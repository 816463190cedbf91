//! `etcd`: a cluster of etcd servers (3.4 or newer).
//!
//! Each lock is a line of keys in a folder of its own, in the order in which they were created (`line.rs`). A claim puts
//! its key, with a lease, and reads who is first, in one transaction; who is not first watches the one before it. Who is
//! first holds the lock, and the revision at which its key was created is its token. A claim for several keys takes all
//! of them in one transaction or stands in the line of the first that is not free, and in no other: nobody who waits
//! keeps anybody from a free lock, so opposite orders cannot deadlock.
//!
//! Claims that are renewed share a lease (`session.rs`). What a claim has at the server is known here until the server
//! has answered that it is gone (`claims.rs`).
//!
//! It promises tokens that rise for as long as the cluster keeps its data, and an order between replicas: that of the
//! requests at the cluster, for a claim of several keys at one of them at a time. It does not promise that a holder
//! learns of the loss of its lease before another is granted the lock (etcd#11457), nor that a claim that waits for
//! several keys comes before all that came later.
//!
//! A blind release would mean nothing here: the key of another claim has another name.
//!
//! (etcd, `client/v3/concurrency/mutex.go`; what is done otherwise, and why, is told in `docs/locks/etcd.md`.)

mod claims;
mod line;
mod link;
mod names;
mod session;
mod watch;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use etcd_client::{Compare, CompareOp, Txn, TxnOp, TxnOpResponse};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use self::{
    claims::{Claims, Has},
    line::{Found, MOST_KEYS, Places, Request},
    link::{Failure, Link, Repeat},
    session::{Session, Sessions},
};
use crate::lock::{
    claim::{Claim, Grant, Token},
    error::LockError,
    guarantees::LockName,
    system::{Answer, LockSystem, ReleaseMode, Released, Renewal, ServerId},
    wakeups::Wakeups,
};

/// How long the question for the server's id may take.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// How often an ask begins again because something changed under it.
const MOST_TURNS: u32 = 8;

/// How often it is looked for claims that are over.
const SWEEP: Duration = Duration::from_millis(100);

/// How long taking out one of them may take.
const SWEEPING: Duration = Duration::from_secs(1);

/// Grants locks at an etcd cluster.
#[derive(Debug)]
pub struct Etcd {
    shared: Arc<Shared>,
    sessions: Sessions,
    /// Started by the first ask.
    sweeper: OnceLock<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    link: Arc<Link>,
    claims: Claims,
    wakeups: Arc<Wakeups>,
}

impl Etcd {
    /// Reads the addresses of the members, such as `http://host:2379`. Connects to nothing yet: a cluster that is down
    /// is found out by the first request, and does not keep a program from starting.
    ///
    /// # Errors
    /// [`LockError::BadSetting`] when there is none, or one cannot be used.
    pub fn open(members: &[String]) -> Result<Self, LockError> {
        let link = Arc::new(Link::open(members)?);
        Ok(Self {
            shared: Arc::new(Shared {
                link: link.clone(),
                claims: Claims::default(),
                wakeups: Arc::default(),
            }),
            sessions: Sessions::new(link),
            sweeper: OnceLock::new(),
        })
    }

    async fn ask_until(&self, claim: &Claim, until: Instant) -> Result<Answer, Failure> {
        let asked = Instant::now();
        let mut changed = None;
        for _ in 0..MOST_TURNS {
            let session = self.session(claim, until).await?;
            let Some(has) = self.shared.claims.ask(claim, &session, asked) else {
                continue;
            };
            let request = self.shared.request(claim, &has, until);
            let found = request.ask(&has.places).await;
            if !matches!(found, Err(Failure::Silence | Failure::Member(_))) {
                self.shared.claims.answered(claim.owner);
            }
            match found {
                Err(Failure::NoLease) => session.end(),
                Err(other) => return Err(other),
                Ok(Found::TooLate(version)) => session.raise_barrier(version),
                Ok(Found::First(created)) => return Ok(self.grant(claim, &session, &created)),
                Ok(Found::Behind { key, places }) => return Ok(self.refuse(claim, key, places)),
                Ok(Found::Changed(places)) => {
                    self.shared.claims.stands(claim.owner, places.clone());
                    changed = Some(places);
                }
            }
        }
        // Others are quicker, but the cluster works: whoever waits asks again.
        let places = changed.ok_or(Failure::NoLease)?;
        let key = places.iter().position(Option::is_some).unwrap_or(0);
        Ok(self.refuse(claim, key, places))
    }

    /// The lease that a claim hangs on: the one that it has, while that is fresh. One that has a request in doubt under
    /// it stays until it is over, since only the barrier of its own lease keeps that request out.
    async fn session(&self, claim: &Claim, until: Instant) -> Result<Arc<Session>, Failure> {
        let ttl = session::lease_time(claim.ttl);
        let link = &self.shared.link;
        if let Some(has) = self.shared.claims.get(claim.owner) {
            let known = has.session;
            if !claim.alone && (known.is_fresh() || has.in_doubt && !known.is_over()) {
                return Ok(known);
            }
            // Nobody renews it while its claim waits.
            if claim.alone && !matches!(known.keep_alive(link, until).await, Err(Failure::NoLease))
            {
                return Ok(known);
            }
        }
        if claim.alone {
            return Session::alone(link, ttl, until).await;
        }
        self.sessions.shared(ttl, until).await
    }

    fn grant(&self, claim: &Claim, session: &Session, created: &[i64]) -> Answer {
        let places = created.iter().copied().map(Some).collect();
        self.shared.claims.stands(claim.owner, places);
        self.shared.claims.stop_watching(claim.owner);
        let tokens = created.iter().map(|&created| Token::new(created));
        let grant: Grant = claim.keys.iter().cloned().zip(tokens).collect();
        Answer::Granted(grant.counting_from(session.since()))
    }

    fn refuse(&self, claim: &Claim, key: usize, places: Places) -> Answer {
        let own = places[key];
        self.shared.claims.stands(claim.owner, places);
        let key = claim.keys[key].clone();
        if let Some(own) = own {
            let (link, hub) = (self.shared.link.clone(), self.shared.wakeups.clone());
            let watch = watch::until_gone(link, key.clone(), own, hub);
            self.shared.claims.watch(claim.owner, watch);
        }
        Answer::Refused {
            key,
            retry_in: None,
        }
    }

    fn start_sweeping(&self) {
        self.sweeper.get_or_init(|| {
            let sweep = sweep(self.shared.clone());
            AbortOnDropHandle::new(tokio::spawn(sweep))
        });
    }
}

/// Takes out claims that are over, for ever.
async fn sweep(shared: Arc<Shared>) {
    loop {
        if shared.claims.is_empty() {
            shared.claims.entered.notified().await;
        }
        sleep(SWEEP).await;
        for claim in shared.claims.overdue() {
            let until = Instant::now() + SWEEPING;
            if let Err(failure) = shared.leave(&claim, until).await {
                tracing::debug!(lock.owner = %claim.owner, ?failure, "a claim that is over stays");
            }
        }
    }
}

impl Shared {
    fn request<'a>(&'a self, claim: &'a Claim, has: &'a Has, until: Instant) -> Request<'a> {
        Request {
            link: &self.link,
            claims: &self.claims,
            claim,
            name: &has.name,
            session: &has.session,
            until,
        }
    }

    /// Takes a claim out of all lines, and says whether it stood in all of them.
    async fn leave(&self, claim: &Claim, until: Instant) -> Result<bool, Failure> {
        let Some(has) = self.claims.leave(claim.owner) else {
            return Ok(false);
        };
        let request = self.request(claim, &has, until);
        let stood = request.leave(&has.places, has.in_doubt).await?;
        self.claims.left(claim.owner);
        if has.session.alone {
            has.session.revoke(&self.link).await;
        }
        Ok(stood)
    }

    /// Asks whether a claim still has what it was granted; a lease of its own is kept alive.
    async fn renew(&self, claim: &Claim, until: Instant) -> Result<Renewal, Failure> {
        let asked = Instant::now();
        let Some(has) = self.claims.standing(claim.owner) else {
            return Ok(Renewal::Lost);
        };
        if has.session.alone {
            match has.session.keep_alive(&self.link, until).await {
                Err(Failure::NoLease) => return Ok(Renewal::Lost),
                kept => kept?,
            }
        }
        let request = self.request(claim, &has, until);
        if !request.stands(&has.places).await? {
            return Ok(Renewal::Lost);
        }
        self.claims.renewed(claim.owner, asked);
        Ok(Renewal::KeptSince(has.session.since()))
    }
}

#[async_trait]
impl LockSystem for Etcd {
    fn name(&self) -> LockName {
        LockName::Etcd
    }

    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        if claim.keys.count() > MOST_KEYS {
            return Err(LockError::bad_setting(format!(
                "etcd locks at most {MOST_KEYS} keys at once"
            )));
        }
        self.start_sweeping();
        let until = Instant::now() + claim.patience;
        let answer = self.ask_until(claim, until).await;
        answer.map_err(|failure| self.shared.link.unavailable(&failure, claim.patience))
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError> {
        let until = Instant::now() + claim.patience;
        let renewed = self.shared.renew(claim, until).await;
        renewed.map_err(|failure| self.shared.link.unavailable(&failure, claim.patience))
    }

    async fn release(&self, claim: &Claim, _: ReleaseMode) -> Result<Released, LockError> {
        let until = Instant::now() + claim.patience;
        let stood = self.shared.leave(claim, until).await;
        stood
            .map(|stood| match stood {
                true => Released::Released,
                false => Released::NotTheOwner,
            })
            .map_err(|failure| self.shared.link.unavailable(&failure, claim.patience))
    }

    fn wakeups(&self) -> Option<&Wakeups> {
        Some(&self.shared.wakeups)
    }

    fn queues(&self) -> bool {
        true
    }

    fn lease_time(&self, wanted: Duration) -> Option<Duration> {
        Some(session::lease_time(wanted))
    }

    async fn server(&self, draw: &str) -> Result<Option<ServerId>, LockError> {
        let is_new = Compare::create_revision(names::SERVER, CompareOp::Equal, 0);
        let txn = Txn::new()
            .when([is_new])
            .and_then([
                TxnOp::put(names::SERVER, draw, None),
                TxnOp::get(names::SERVER, None),
            ])
            .or_else([TxnOp::get(names::SERVER, None)]);
        let link = &self.shared.link;
        let until = Instant::now() + SERVER_PATIENCE;
        let unavailable = |failure| link.unavailable(&failure, SERVER_PATIENCE);
        let reply = link.txn(&txn, until, Repeat::AtEachMember).await;
        let answers = reply.answer.map_err(unavailable)?.op_responses();
        let Some(TxnOpResponse::Get(read)) = answers.last() else {
            let nonsense = Failure::Answer("the server's id was answered with nonsense".to_owned());
            return Err(unavailable(nonsense));
        };
        let id = read.kvs().first().map(|key| key.value());
        Ok(id.map(|id| ServerId {
            id: String::from_utf8_lossy(id).into_owned(),
            address: link.address(),
            kept_in: format!("the key {}", names::SERVER),
        }))
    }

    fn connections(&self) -> u64 {
        self.shared.link.connections()
    }
}
