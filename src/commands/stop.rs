//! How people and systems ask a program to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C and SIGTERM, from when they are listened to: from then on neither ends the program by itself.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the system takes no more listeners.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Returns at the next one.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
