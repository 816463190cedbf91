//! The one subscription of this process: it hears which locks are reserved for its waiters, and wakes them.
//!
//! It promises to come back after every failure, and then wakes everybody: whoever was to be told meanwhile was taken
//! for dead and must stand in line again. It does not promise that a wake-up arrives; waiters ask by themselves now and
//! then.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use redis::{Client, Msg, RedisResult, aio::PubSub};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::{link::CONNECTING, told};
use crate::lock::{backoff::Backoff, wakeups::Wakeups};

/// The first and the longest pause before the next try to subscribe.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How often a subscription that hears nothing asks whether its server is still there.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Feeds the hub for ever.
pub(super) async fn feed(client: Client, channel: String, hub: Arc<Wakeups>) {
    let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
    loop {
        match timeout(CONNECTING, subscribe(&client, &channel)).await {
            Ok(Ok(subscription)) => {
                backoff = Backoff::new(PAUSES.0, PAUSES.1);
                hub.wake_all();
                pass_on(subscription, &hub).await;
                tracing::debug!("the subscription to reserved locks ended");
            }
            Ok(Err(error)) => tracing::debug!(%error, "cannot subscribe to reserved locks"),
            Err(_) => tracing::debug!("subscribing to reserved locks took too long"),
        }
        sleep(backoff.next_pause()).await;
    }
}

async fn subscribe(client: &Client, channel: &str) -> RedisResult<PubSub> {
    let mut subscription = client.get_async_pubsub().await?;
    subscription.subscribe(channel).await?;
    Ok(subscription)
}

/// Passes messages on until the connection ends or falls silent.
async fn pass_on(subscription: PubSub, hub: &Wakeups) {
    let (mut requests, mut messages) = subscription.split();
    let mut heartbeat = interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => wake(hub, &message),
                None => return,
            },
            _ = heartbeat.tick() => {
                let answer = timeout(CONNECTING, requests.ping::<redis::Value>()).await;
                if !matches!(answer, Ok(Ok(_))) {
                    return;
                }
            }
        }
    }
}

fn wake(hub: &Wakeups, message: &Msg) {
    let text = message.get_payload::<String>().ok();
    if let Some(key) = text.and_then(|text| told(&text)) {
        hub.wake(&key);
    }
}
