//! The waiters of one key stand in line inside the process, so that only the first one asks the lock system.
//!
//! The line holds waiters only. Who is granted leaves it: if a holder stayed in it, one that is frozen would block
//! its own process beyond the end of its lease. Nothing is kept for a key that nobody waits for.
//!
//! It is fair inside the process, not between processes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::sync::OwnedMutexGuard;

use super::{
    error::LockError,
    gauge::{Counted, Gauge},
    key::Key,
    many::Keys,
    unpoisoned,
};

/// How many acquisitions may stand in line. Each costs a task and some hundred bytes; ten thousand are far more
/// than a lock system can serve within any sensible wait limit.
pub const MOST_WAITERS: usize = 10_000;

/// All lines of a process.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    /// A key is here only while somebody stands in its line.
    lines: Arc<Mutex<HashMap<Key, Line>>>,
    standing: Gauge,
}

/// The line of one key.
#[derive(Debug, Default)]
struct Line {
    /// The first in line holds it. Tokio serves the others in the order in which they came.
    front: Arc<tokio::sync::Mutex<()>>,
    /// How many stand in line, the first one included.
    people: usize,
}

/// The first place in the line of each key. Dropping it lets the next ones through.
#[derive(Debug)]
pub struct Place {
    _fronts: Vec<Front>,
    _standing: Counted,
}

/// The first place in one line. The fields are dropped in this order: the place must be free before the line goes,
/// or somebody who comes in between would start a second line.
#[derive(Debug)]
struct Front {
    _place: OwnedMutexGuard<()>,
    _in_line: InLine,
}

/// Somebody stands in this line.
#[derive(Debug)]
struct InLine {
    queue: Queue,
    key: Key,
}

impl Queue {
    /// Waits until it is first in the lines of all keys, which are entered in order. May be cancelled.
    ///
    /// # Errors
    /// [`LockError::TooManyWaiters`] beyond [`MOST_WAITERS`].
    pub async fn enter(&self, keys: &Keys) -> Result<Place, LockError> {
        let standing = self.standing.enter();
        if self.standing.get() > MOST_WAITERS {
            return Err(LockError::TooManyWaiters {
                limit: MOST_WAITERS,
            });
        }
        let mut fronts = Vec::with_capacity(keys.count());
        for key in keys {
            fronts.push(self.stand_in_line(key).await);
        }
        Ok(Place {
            _fronts: fronts,
            _standing: standing,
        })
    }

    /// How many keys have a line.
    pub fn lines(&self) -> usize {
        unpoisoned::lock(&self.lines).len()
    }

    async fn stand_in_line(&self, key: &Key) -> Front {
        let (front, in_line) = self.join(key);
        Front {
            _place: front.lock_owned().await,
            _in_line: in_line,
        }
    }

    fn join(&self, key: &Key) -> (Arc<tokio::sync::Mutex<()>>, InLine) {
        let mut lines = unpoisoned::lock(&self.lines);
        let line = lines.entry(key.clone()).or_default();
        line.people += 1;
        let in_line = InLine {
            queue: self.clone(),
            key: key.clone(),
        };
        (line.front.clone(), in_line)
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut lines = unpoisoned::lock(&self.queue.lines);
        let Some(line) = lines.get_mut(&self.key) else {
            return;
        };
        line.people -= 1;
        if line.people == 0 {
            lines.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(texts: &[&str]) -> Keys {
        Keys::new(texts.iter().map(|text| Key::parse(text).unwrap())).unwrap()
    }

    #[tokio::test]
    async fn waiters_come_through_in_order() {
        let queue = Queue::default();
        let first = queue.enter(&keys(&["a"])).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiters = Vec::new();
        for number in 0..5 {
            let (queue, order) = (queue.clone(), order.clone());
            waiters.push(tokio::spawn(async move {
                let _place = queue.enter(&keys(&["a"])).await.unwrap();
                order.lock().unwrap().push(number);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for waiter in waiters {
            waiter.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn a_hundred_thousand_keys_leave_nothing() {
        let queue = Queue::default();
        for number in 0..100_000 {
            let place = queue.enter(&keys(&["a", &format!("b{number}")])).await;
            assert_eq!(queue.lines(), 2);
            drop(place);
        }
        assert_eq!(queue.lines(), 0);
    }

    #[tokio::test]
    async fn the_number_of_waiters_is_limited() {
        let queue = Queue::default();
        let mut others: Vec<_> = (0..MOST_WAITERS).map(|_| queue.standing.enter()).collect();
        let refused = queue.enter(&keys(&["a"])).await;
        let limit = MOST_WAITERS;
        assert_eq!(refused.err(), Some(LockError::TooManyWaiters { limit }));
        others.pop();
        assert!(queue.enter(&keys(&["a"])).await.is_ok());
    }

    #[tokio::test]
    async fn a_waiter_that_gives_up_leaves_nothing() {
        let queue = Queue::default();
        let first = queue.enter(&keys(&["b"])).await.unwrap();
        let wanted = keys(&["a", "b"]);
        tokio::select! {
            biased;
            _ = queue.enter(&wanted) => panic!("b is not free"),
            () = tokio::task::yield_now() => {}
        }
        drop(first);
        assert_eq!(queue.lines(), 0);
    }
}
