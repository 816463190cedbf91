//! The one connection of this process that hears which rows were freed, and wakes who waits for them.
//!
//! It promises to come back after every failure, and then wakes everybody, since what was freed meanwhile was not
//! heard. It does not promise that a wake-up arrives; waiters ask by themselves now and then.

use std::{sync::Arc, time::Duration};

use sqlx::{
    PgPool,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::time::{sleep, timeout};

use super::postgres::CHANNEL;
use crate::lock::{backoff::Backoff, key::Key, wakeups::Wakeups};

/// The first and the longest pause before the next try to listen.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How long connecting, or the answer that the connection still lives, may take.
const ANSWER: Duration = Duration::from_secs(2);

/// How long nothing is heard until the connection is asked whether it still lives.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Feeds the hub for ever. The pool only says where the database is: its connections are left to the statements.
pub(super) async fn feed(pool: PgPool, hub: Arc<Wakeups>) {
    let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
    loop {
        match timeout(ANSWER, listen(&pool)).await {
            Ok(Ok(listener)) => {
                backoff = Backoff::new(PAUSES.0, PAUSES.1);
                hub.wake_all();
                pass_on(listener, &hub).await;
                tracing::debug!("the connection that hears of freed rows ended");
            }
            Ok(Err(error)) => tracing::debug!(%error, "cannot listen for freed rows"),
            Err(_) => tracing::debug!("listening for freed rows took too long"),
        }
        sleep(backoff.next_pause()).await;
    }
}

async fn listen(pool: &PgPool) -> sqlx::Result<PgListener> {
    let one = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(ANSWER)
        .connect_lazy_with((*pool.connect_options()).clone());
    let mut listener = PgListener::connect_with(&one).await?;
    // What is missed while the connection is away must be known, or those who wait would sleep on.
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

/// Passes notifications on until the connection ends or falls silent.
async fn pass_on(mut listener: PgListener, hub: &Wakeups) {
    loop {
        match timeout(HEARTBEAT, listener.try_recv()).await {
            Ok(Ok(Some(told))) => {
                if let Ok(key) = Key::parse(told.payload()) {
                    hub.wake(&key);
                }
            }
            Ok(Ok(None) | Err(_)) => return,
            Err(_) if lives(&mut listener).await => {}
            Err(_) => return,
        }
    }
}

async fn lives(listener: &mut PgListener) -> bool {
    let asked = sqlx::query("SELECT 1").execute(listener);
    matches!(timeout(ANSWER, asked).await, Ok(Ok(_)))
}
