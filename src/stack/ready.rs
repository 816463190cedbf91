//! Waiting until a server answers: asked again and again, until it does, it ends, or the deadline is over.

use std::process::ExitStatus;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::child::Guarded;

/// How long one question may take; a server that accepts and then says nothing is asked again.
const QUESTION_DEADLINE: Duration = Duration::from_secs(2);

/// The pause between two questions.
const QUESTION_PAUSE: Duration = Duration::from_millis(25);

/// Why a server is not ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// It ended first.
    #[error("it ended before it answered ({0})")]
    Ended(ExitStatus),
    /// It runs and does not answer.
    #[error("it did not answer within {0:?}")]
    Silent(Duration),
    /// The system would not say how it is.
    #[error("cannot look after it: {0}")]
    Unknown(#[from] std::io::Error),
}

/// Asks until the answer is yes, the process has ended, or `patience` is over.
pub async fn until_ready<Ask, Answer>(
    process: &mut Guarded,
    patience: Duration,
    ask: Ask,
) -> Result<(), NotReady>
where
    Ask: Fn() -> Answer,
    Answer: Future<Output = bool>,
{
    let deadline = Instant::now() + patience;
    loop {
        if timeout(QUESTION_DEADLINE, ask()).await.unwrap_or(false) {
            return Ok(());
        }
        if let Some(status) = process.try_wait()? {
            return Err(NotReady::Ended(status));
        }
        if Instant::now() >= deadline {
            return Err(NotReady::Silent(patience));
        }
        sleep(QUESTION_PAUSE).await;
    }
}
