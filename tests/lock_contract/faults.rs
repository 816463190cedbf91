//! What the layers do when requests are lost, late or never answered, or the process ends badly.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use async_trait::async_trait;
use doublebook::lock::{
    Answer, Claim, LockError, LockName, LockService, LockSystem, Lost, ReleaseMode, ReleaseOutcome,
    Released, Renewal, Wish,
};

use crate::{
    in_memory::{Flaw, InMemory},
    pair::{
        PATIENCE, SHORT, at_once, claim, eventually, get, grant, is_confirmed, is_taken,
        is_unavailable, short, soon, wish,
    },
};

/// What happens to a request.
#[derive(Clone, Copy, Default)]
enum Fault {
    #[default]
    None,
    /// It does not arrive.
    Unsent,
    /// It is carried out, but the answer does not come back.
    ReplyLost,
    /// It arrives after this time.
    ArrivesAfter(Duration),
    /// The answer comes back after this time.
    RepliesAfter(Duration),
    /// It does not arrive, and nobody says so.
    Hangs,
    /// So many are under way that it is not sent.
    NoTurn,
}

impl Fault {
    async fn befalls<T>(
        self,
        request: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, LockError> {
        match self {
            Self::None => request.await,
            Self::Unsent => Err(cut()),
            Self::ReplyLost => request.await.and(Err(cut())),
            Self::ArrivesAfter(time) => {
                tokio::time::sleep(time).await;
                request.await
            }
            Self::RepliesAfter(time) => {
                let answer = request.await;
                tokio::time::sleep(time).await;
                answer
            }
            Self::Hangs => std::future::pending().await,
            Self::NoTurn => Err(LockError::TooManyWaiters { limit: 1 }),
        }
    }
}

fn cut() -> LockError {
    LockError::Unavailable {
        reason: "the connection was cut".to_owned(),
    }
}

/// A good system behind a network with faults.
struct Faulty {
    system: InMemory,
    asks: Mutex<Fault>,
    renewals: Mutex<Fault>,
    releases: Mutex<Fault>,
    released: AtomicU32,
    /// Releases under way.
    releasing: AtomicU32,
    queues: bool,
}

impl Faulty {
    fn new() -> Arc<Self> {
        Arc::new(Self::good())
    }

    fn good() -> Self {
        Self {
            system: InMemory::new(Flaw::None),
            asks: Mutex::default(),
            renewals: Mutex::default(),
            releases: Mutex::default(),
            released: AtomicU32::new(0),
            releasing: AtomicU32::new(0),
            queues: false,
        }
    }

    fn releases(&self) -> u32 {
        self.released.load(Ordering::SeqCst)
    }
}

/// Also for a request that is dropped.
struct UnderWay<'a>(&'a AtomicU32);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn set(faults: &Mutex<Fault>, fault: Fault) {
    *faults.lock().expect("nobody panics while it is locked") = fault;
}

fn fault(faults: &Mutex<Fault>) -> Fault {
    *faults.lock().expect("nobody panics while it is locked")
}

#[async_trait]
impl LockSystem for Faulty {
    fn name(&self) -> LockName {
        self.system.name()
    }

    async fn ask(&self, claim: &Claim) -> Result<Answer, LockError> {
        fault(&self.asks).befalls(self.system.ask(claim)).await
    }

    async fn renew(&self, claim: &Claim) -> Result<Renewal, LockError> {
        fault(&self.renewals)
            .befalls(self.system.renew(claim))
            .await
    }

    async fn release(&self, claim: &Claim, mode: ReleaseMode) -> Result<Released, LockError> {
        self.released.fetch_add(1, Ordering::SeqCst);
        self.releasing.fetch_add(1, Ordering::SeqCst);
        let _under_way = UnderWay(&self.releasing);
        fault(&self.releases)
            .befalls(self.system.release(claim, mode))
            .await
    }

    fn queues(&self) -> bool {
        self.queues
    }
}

#[tokio::test]
async fn what_an_ask_without_an_answer_got_is_given_back() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.asks, Fault::ReplyLost);
    ensure!(is_unavailable(&service.acquire(wish(&["a"])).await));
    ensure!(service.settle(PATIENCE).await);
    set(&network.asks, Fault::None);
    ensure!(
        !is_taken(&service, &["a"]).await?,
        "the grant was left behind"
    );
    Ok(())
}

#[tokio::test]
async fn an_ask_that_was_not_sent_is_not_given_back() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.asks, Fault::NoTurn);
    let refused = service.acquire(wish(&["a"])).await;
    ensure!(
        matches!(refused, Err(LockError::TooManyWaiters { .. })),
        "{refused:?}"
    );
    ensure!(service.settle(PATIENCE).await);
    ensure!(network.releases() == 0, "{} releases", network.releases());
    Ok(())
}

/// However many asks an outage left unanswered, its end is not met with all their releases at once; and each is given
/// back.
#[tokio::test]
async fn few_of_many_unanswered_releases_are_sent_again_at_a_time() -> Result<()> {
    const MANY: usize = 200;
    const AT_A_TIME: u32 = 16;
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.asks, Fault::ReplyLost);
    set(&network.releases, Fault::Unsent);
    let names: Vec<String> = (0..MANY).map(|number| format!("key {number}")).collect();
    for name in &names {
        ensure!(is_unavailable(&service.acquire(at_once(&[name])).await));
    }
    eventually("all are being sent again", async || {
        network.releases() as usize > 3 * MANY
    })
    .await?;
    set(&network.releases, Fault::Hangs);
    let under_way = || network.releasing.load(Ordering::SeqCst);
    let mut most = 0;
    for round in 1..=2 {
        let before = network.releases();
        eventually("others get their turns", async || {
            most = most.max(under_way());
            network.releases() >= before + AT_A_TIME * round
        })
        .await?;
    }
    ensure!(most == AT_A_TIME, "{most} at a time");

    set(&network.releases, Fault::None);
    ensure!(service.settle(PATIENCE).await);
    set(&network.asks, Fault::None);
    for name in &names {
        ensure!(
            !is_taken(&service, &[name]).await?,
            "{name} was left behind"
        );
    }
    Ok(())
}

/// Each of them is a task. The leases of the others run out.
#[tokio::test]
async fn a_limited_number_of_unanswered_releases_is_sent_again() -> Result<()> {
    const MOST: usize = 10_000;
    const MORE: usize = 5;
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.asks, Fault::ReplyLost);
    set(&network.releases, Fault::Hangs);
    let names: Vec<String> = (0..MOST + MORE).map(|number| number.to_string()).collect();
    for name in &names {
        ensure!(is_unavailable(&service.acquire(at_once(&[name])).await));
    }
    eventually("all first tries have ended", async || {
        network.releases() as usize > MOST + MORE && network.releasing.load(Ordering::SeqCst) <= 16
    })
    .await?;
    set(&network.releases, Fault::None);
    ensure!(service.settle(PATIENCE).await);
    set(&network.asks, Fault::None);
    let mut left = 0;
    for name in &names {
        left += usize::from(is_taken(&service, &[name]).await?);
    }
    ensure!(left == MORE, "{left} were left to run out");
    Ok(())
}

/// It is not cancelled, since it may be carried out yet; and what it then gets is given back.
#[tokio::test]
async fn what_a_late_ask_gets_is_given_back() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.asks, Fault::ArrivesAfter(Duration::from_secs(6)));
    let began = Instant::now();
    ensure!(is_unavailable(&service.acquire(at_once(&["a"])).await));
    ensure!(
        began.elapsed() < Duration::from_secs(6),
        "its patience did not end"
    );
    set(&network.asks, Fault::None);
    ensure!(service.settle(PATIENCE).await);
    ensure!(network.releases() == 1, "{} releases", network.releases());
    ensure!(
        !is_taken(&service, &["a"]).await?,
        "the grant was left behind"
    );
    Ok(())
}

/// Bug 22.
#[tokio::test]
async fn a_grant_that_took_longer_than_its_lease_is_given_back_and_not_returned() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.asks, Fault::RepliesAfter(SHORT * 2));
    let acquired = service.acquire(short(&["a"])).await;
    ensure!(matches!(acquired, Err(LockError::Lost(_))), "{acquired:?}");
    ensure!(service.settle(PATIENCE).await);
    ensure!(network.releases() == 1, "{} releases", network.releases());
    Ok(())
}

#[tokio::test]
async fn a_lease_outlives_renewals_that_fail_for_a_while() -> Result<()> {
    for failing in [Fault::Unsent, Fault::ReplyLost, Fault::Hangs] {
        let network = Faulty::new();
        let service = LockService::new(network.clone());
        let ttl = SHORT * 20;
        let held = get(
            &service,
            Wish {
                ttl,
                ..wish(&["a"])
            },
        )
        .await?;
        set(&network.renewals, failing);
        tokio::time::sleep(ttl / 2).await;
        set(&network.renewals, Fault::None);
        tokio::time::sleep(ttl).await;
        held.check()?;
        ensure!(is_confirmed(&held).await?);
    }
    Ok(())
}

#[tokio::test]
async fn the_own_timer_tells_the_loss_while_renewals_hang() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.renewals, Fault::Hangs);
    let held = get(
        &service,
        Wish {
            ttl: SHORT,
            ..wish(&["a"])
        },
    )
    .await?;
    let began = Instant::now();
    soon("the loss is told", held.lost()).await?;
    println!("told {:?} after a lease of {SHORT:?}", began.elapsed());
    Ok(())
}

/// Also when the lock system would still say so: somebody may have seen the loss and acted on it.
#[tokio::test]
async fn what_was_lost_by_the_own_timer_is_never_confirmed_again() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    let unrenewed = Wish {
        renew: false,
        ..wish(&["a"])
    };
    let held = get(
        &service,
        Wish {
            ttl: SHORT,
            ..unrenewed
        },
    )
    .await?;
    held.lost().await;
    let trips = held.trips();
    ensure!(
        !is_confirmed(&held).await? && held.check() == Err(Lost),
        "it came back"
    );
    ensure!(held.trips() == trips, "a lost lease was asked for");
    Ok(())
}

#[tokio::test]
async fn a_renewal_that_hangs_does_not_delay_the_release() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.renewals, Fault::Hangs);
    let held = get(
        &service,
        Wish {
            ttl: SHORT * 10,
            ..wish(&["a"])
        },
    )
    .await?;
    eventually("a renewal hangs", async || held.trips() > 1).await?;
    let began = Instant::now();
    ensure!(held.release().await == ReleaseOutcome::Released);
    ensure!(
        began.elapsed() < SHORT,
        "the release took {:?}",
        began.elapsed()
    );
    Ok(())
}

#[tokio::test]
async fn a_release_is_sent_until_it_is_answered() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.releases, Fault::Unsent);
    let releasing = get(&service, wish(&["a"])).await?.release();
    eventually("it is sent again", async || network.releases() >= 3).await?;
    ensure!(
        is_taken(&service, &["a"]).await?,
        "it was freed by a request that was not sent"
    );
    set(&network.releases, Fault::None);
    ensure!(soon("it is answered", releasing).await? == ReleaseOutcome::Released);
    Ok(())
}

/// The second answer, "not the owner", does not tell whether the first request freed it.
#[tokio::test]
async fn a_release_whose_answer_was_lost_stays_unknown() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.releases, Fault::ReplyLost);
    let releasing = get(&service, short(&["a"])).await?.release();
    eventually("it is sent", async || network.releases() >= 1).await?;
    set(&network.releases, Fault::None);
    let outcome = soon("it ends", releasing).await?;
    ensure!(outcome == ReleaseOutcome::Unknown, "{outcome:?}");
    Ok(())
}

#[tokio::test]
async fn a_release_gives_up_when_the_lease_is_over() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.releases, Fault::Unsent);
    let releasing = get(&service, short(&["a"])).await?.release();
    ensure!(soon("it gives up", releasing).await? == ReleaseOutcome::Unknown);
    Ok(())
}

/// It could free a lock that was granted to somebody else in between.
#[tokio::test]
async fn a_blind_release_is_never_repeated() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.releases, Fault::Unsent);
    let blind = Wish {
        release: ReleaseMode::Blind,
        ..wish(&["a"])
    };
    let outcome = soon("it ends", get(&service, blind).await?.release()).await?;
    ensure!(
        outcome == ReleaseOutcome::Unknown && network.releases() == 1,
        "{outcome:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_release_goes_on_when_nobody_waits_for_it_and_settling_waits() -> Result<()> {
    let network = Faulty::new();
    let service = LockService::new(network.clone());
    set(&network.releases, Fault::ArrivesAfter(SHORT));
    drop(get(&service, wish(&["a"])).await?);
    ensure!(
        !service.settle(SHORT / 10).await,
        "it settled before the release arrived"
    );
    ensure!(service.settle(PATIENCE).await, "it did not settle");
    ensure!(!is_taken(&service, &["a"]).await?);
    Ok(())
}

/// A system that queues at its server must be told who leaves.
#[tokio::test]
async fn giving_up_is_told_to_a_system_that_queues() -> Result<()> {
    for (queues, told) in [(true, 1), (false, 0)] {
        let network = Arc::new(Faulty {
            queues,
            ..Faulty::good()
        });
        let service = LockService::new(network.clone());
        grant(&service, &claim(&["a"], PATIENCE)).await?;
        let refused = service.acquire(at_once(&["a"])).await;
        ensure!(
            matches!(refused, Err(LockError::Timeout { .. })),
            "{refused:?}"
        );
        ensure!(service.settle(PATIENCE).await);
        ensure!(
            network.releases() == told,
            "{} releases",
            network.releases()
        );
    }
    Ok(())
}

/// It may keep the lease for as long as the process lives, which is longer than its holder believes in it.
#[tokio::test]
async fn the_end_of_a_lease_is_told_to_a_system_that_queues() -> Result<()> {
    let network = Arc::new(Faulty {
        queues: true,
        ..Faulty::good()
    });
    let service = LockService::new(network.clone());
    set(&network.renewals, Fault::Hangs);
    let mine = |name: &'static str| Wish {
        ttl: SHORT,
        ..wish(&[name])
    };
    let lost = get(&service, mine("a")).await?;
    get(&service, mine("b")).await?.abandon();
    soon("the loss is told", lost.lost()).await?;
    eventually("both ends are told", async || network.releases() == 2).await?;
    ensure!(lost.check() == Err(Lost));
    Ok(())
}

/// Promised: half a second.
#[tokio::test]
async fn giving_up_does_not_wait_for_long_until_that_is_heard() -> Result<()> {
    let network = Arc::new(Faulty {
        queues: true,
        ..Faulty::good()
    });
    let service = LockService::new(network.clone());
    grant(&service, &claim(&["a"], PATIENCE)).await?;
    set(&network.releases, Fault::Hangs);
    let began = Instant::now();
    let refused = service.acquire(at_once(&["a"])).await;
    ensure!(
        matches!(refused, Err(LockError::Timeout { .. })),
        "{refused:?}"
    );
    ensure!(
        began.elapsed() < Duration::from_secs(5),
        "it took {:?}",
        began.elapsed()
    );
    Ok(())
}

#[tokio::test]
async fn a_time_that_makes_no_sense_is_a_bad_setting() -> Result<()> {
    let service = LockService::new(Faulty::new());
    let (never, forever) = (Duration::ZERO, Duration::MAX);
    for senseless in [
        Wish {
            ttl: never,
            ..wish(&["a"])
        },
        Wish {
            ttl: forever,
            ..wish(&["a"])
        },
        Wish {
            wait: forever,
            ..wish(&["a"])
        },
    ] {
        let refused = service.acquire(senseless).await;
        ensure!(
            matches!(refused, Err(LockError::BadSetting { .. })),
            "{refused:?}"
        );
    }
    Ok(())
}

#[test]
fn what_is_held_may_outlive_its_runtime() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let held = runtime.block_on(async {
        let service = LockService::new(Faulty::new());
        get(&service, wish(&["a"])).await
    })?;
    drop(runtime);
    drop(held);
    Ok(())
}
