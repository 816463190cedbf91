//! What dies is started again, and people are told.
//!
//! One task owns each process: it waits for its end, starts it again, and stops it when everything stops. What dies
//! again and again is started more and more seldom, and never given up.

use std::convert::Infallible;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::replica::Replica;
use crate::commands::say;
use crate::stack::{Kind, PostgresServer, Server};

/// The pause before the second start in a row; it doubles with each further one. The first has none.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause: somebody who has repaired the cause should not have to wait for long.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What has lived for so long died of something new.
const HEALTHY_LIFE: Duration = Duration::from_secs(30);

/// A process that can be started again.
#[async_trait]
pub trait Restartable: Send + 'static {
    /// What people call it.
    fn title(&self) -> String;
    /// Waits until it has ended.
    async fn ended(&mut self) -> io::Result<ExitStatus>;
    /// Starts it again and returns when it answers.
    async fn start_again(&mut self) -> anyhow::Result<()>;
    /// Asks it to end and waits until it has.
    async fn stop(&mut self) -> anyhow::Result<()>;
}

/// Keeps processes running until it is told to stop them.
#[derive(Default)]
pub struct Supervisor {
    tasks: JoinSet<()>,
    stopping: CancellationToken,
}

impl Supervisor {
    /// Takes over a process.
    pub fn watch(&mut self, process: impl Restartable) {
        self.tasks.spawn(watch(process, self.stopping.clone()));
    }

    /// Stops all of them at once and waits until they have ended.
    pub async fn stop(self) {
        self.stopping.cancel();
        self.tasks.join_all().await;
    }
}

async fn watch(mut process: impl Restartable, stopping: CancellationToken) {
    stopping
        .run_until_cancelled(keep_running(&mut process))
        .await;
    if let Err(error) = process.stop().await {
        say(format!(
            "{} could not be stopped: {error:#}",
            process.title()
        ));
    }
}

async fn keep_running(process: &mut impl Restartable) -> Infallible {
    let mut pause = Duration::ZERO;
    loop {
        let start = Instant::now();
        let end = process.ended().await;
        if start.elapsed() >= HEALTHY_LIFE {
            pause = Duration::ZERO;
        }
        say(format!(
            "{} ended ({}); it is started again",
            process.title(),
            reason(end)
        ));

        loop {
            sleep(pause).await;
            pause = longer(pause);
            match process.start_again().await {
                Ok(()) => break say(format!("{} runs again", process.title())),
                Err(error) => say(format!("{error:#}; the next try is in {pause:?}")),
            }
        }
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE)
}

fn reason(end: io::Result<ExitStatus>) -> String {
    match end {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }
}

#[async_trait]
impl Restartable for Replica {
    fn title(&self) -> String {
        format!("replica {}", self.name())
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.ended().await
    }

    async fn start_again(&mut self) -> anyhow::Result<()> {
        self.start_again().await
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        self.stop().await
    }
}

#[async_trait]
impl<K: Kind> Restartable for Server<K> {
    fn title(&self) -> String {
        format!("the private {} on port {}", K::TITLE, self.port())
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.ended().await
    }

    async fn start_again(&mut self) -> anyhow::Result<()> {
        self.start_again().await
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        self.stop().await
    }
}

#[async_trait]
impl Restartable for PostgresServer {
    fn title(&self) -> String {
        "the private PostgreSQL".to_owned()
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.ended().await
    }

    async fn start_again(&mut self) -> anyhow::Result<()> {
        self.start_again().await
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        self.stop().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{FIRST_PAUSE, LONGEST_PAUSE, longer};

    #[test]
    fn pauses_grow_up_to_a_limit() {
        assert_eq!(longer(Duration::ZERO), FIRST_PAUSE);
        assert_eq!(longer(FIRST_PAUSE), FIRST_PAUSE * 2);
        assert_eq!(longer(LONGEST_PAUSE), LONGEST_PAUSE);
    }
}
