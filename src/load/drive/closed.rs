//! The closed model: a client that waits for a slow answer asks for nothing meanwhile, and so hides how slow it was for
//! those who would have come.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::Lane;

pub(super) async fn turn(
    lane: &Arc<Lane>,
    clients: usize,
    turn: &Range<Duration>,
    stop: &CancellationToken,
) {
    let origin = Instant::now();
    let clients = (0..clients).map(|_| {
        let (lane, turn, stop) = (Arc::clone(lane), turn.clone(), stop.clone());
        tokio::spawn(async move {
            loop {
                let now = Instant::now();
                let at = turn.start + (now - origin);
                if at >= turn.end || stop.is_cancelled() {
                    return;
                }
                let Some((number, action)) = lane.next_wish() else {
                    return;
                };
                lane.attempt(number, action, now, at).await;
            }
        })
    });
    join_all(clients).await;
}
