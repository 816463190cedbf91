//! The closed model: a client that waits for a slow answer asks for nothing meanwhile, and so hides how slow it was for
//! those who would have come.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::Lane;

/// The pause of a client that got no answer. A connection that is refused at once would otherwise be asked for again tens
/// of thousands of times a second, and use up the seats.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

pub(super) async fn turn(
    lane: &Arc<Lane>,
    count: usize,
    turn: &Range<Duration>,
    stop: &CancellationToken,
) {
    let (lane, start) = (Arc::clone(lane), turn.start);
    clients(count, turn.end - turn.start, stop, move |now, since| {
        let lane = Arc::clone(&lane);
        async move {
            let Some((number, action)) = lane.next_wish(start + since) else {
                return ControlFlow::Break(());
            };
            if !lane.attempt(number, action, now, start + since).await {
                tokio::time::sleep(AFTER_A_FAILURE).await;
            }
            ControlFlow::Continue(())
        }
    })
    .await;
}

/// So many clients for so long, each in a task of its own: one asks again when it has its answer. `ask` gets the
/// moment and how long it is since all began, and says whether to go on.
pub async fn clients<A, F>(count: usize, length: Duration, stop: &CancellationToken, ask: A)
where
    A: Fn(Instant, Duration) -> F + Clone + Send + 'static,
    F: Future<Output = ControlFlow<()>> + Send,
{
    let began = Instant::now();
    let clients = (0..count).map(|_| {
        let (ask, stop) = (ask.clone(), stop.clone());
        tokio::spawn(async move {
            loop {
                let now = Instant::now();
                let since = now - began;
                if since >= length || stop.is_cancelled() || ask(now, since).await.is_break() {
                    return;
                }
            }
        })
    });
    join_all(clients).await;
}
