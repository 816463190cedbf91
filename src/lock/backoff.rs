//! How long to wait before the next try: exponential with full jitter.
//!
//! Each pause is drawn evenly between nothing and a ceiling that doubles up to a cap. Full jitter spreads the
//! tries of many waiters best (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).

use std::time::Duration;

use rand::RngExt as _;

/// The pauses of one series of tries.
#[derive(Debug)]
pub struct Backoff {
    ceiling: Duration,
    cap: Duration,
}

impl Backoff {
    /// The first pause is at most `first`, every pause is at most `cap`.
    pub fn new(first: Duration, cap: Duration) -> Self {
        Self {
            ceiling: first.min(cap),
            cap,
        }
    }

    /// Draws the next pause.
    pub fn next_pause(&mut self) -> Duration {
        let pause = rand::rng().random_range(Duration::ZERO..=self.ceiling);
        self.ceiling = (self.ceiling * 2).min(self.cap);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_the_first_to_the_cap() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(2), ms(250));
        for ceiling in [2, 4, 8, 16, 32, 64, 128, 250, 250] {
            assert_eq!(backoff.ceiling, ms(ceiling));
            assert!(backoff.next_pause() <= ms(ceiling));
        }
    }
}
