//! Who in this process waits for which key, so that one shared subscription can wake them.
//!
//! A wake-up is a hint: it says "ask again", not "it is yours". None is missed between an ask and the wait after
//! it, if the listener was there before the ask: a wake-up that finds nobody waiting is kept for the next wait.
//! An expiry wakes nobody, so a waiter also asks again by itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use super::{key::Key, many::Keys, unpoisoned};

/// The hub: a system feeds it, waiters listen at it.
#[derive(Debug, Default)]
pub struct Wakeups {
    /// A key is here only while somebody listens for it.
    listeners: Arc<Mutex<Listeners>>,
}

type Listeners = HashMap<Key, Vec<Arc<Notify>>>;

/// Hears the wake-ups of its keys until it is dropped.
#[derive(Debug)]
pub struct Listener {
    keys: Keys,
    bell: Arc<Notify>,
    listeners: Arc<Mutex<Listeners>>,
}

impl Wakeups {
    /// Starts to listen. Do this before the first ask.
    pub fn listen(&self, keys: &Keys) -> Listener {
        let bell = Arc::new(Notify::new());
        let mut listeners = unpoisoned::lock(&self.listeners);
        for key in keys {
            listeners.entry(key.clone()).or_default().push(bell.clone());
        }
        Listener {
            keys: keys.clone(),
            bell,
            listeners: self.listeners.clone(),
        }
    }

    /// The key may be free.
    pub fn wake(&self, key: &Key) {
        if let Some(bells) = unpoisoned::lock(&self.listeners).get(key) {
            bells.iter().for_each(|bell| bell.notify_one());
        }
    }

    /// Any key may be free: the subscription was deaf for a while.
    pub fn wake_all(&self) {
        for bells in unpoisoned::lock(&self.listeners).values() {
            bells.iter().for_each(|bell| bell.notify_one());
        }
    }

    /// How many keys are listened for.
    pub fn keys(&self) -> usize {
        unpoisoned::lock(&self.listeners).len()
    }
}

impl Listener {
    /// Waits for the next wake-up of any of the keys.
    pub async fn woken(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut listeners = unpoisoned::lock(&self.listeners);
        for key in &self.keys {
            let Some(bells) = listeners.get_mut(key) else {
                continue;
            };
            bells.retain(|bell| !Arc::ptr_eq(bell, &self.bell));
            if bells.is_empty() {
                listeners.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn keys(texts: &[&str]) -> Keys {
        Keys::new(texts.iter().map(|text| Key::parse(text).unwrap())).unwrap()
    }

    #[tokio::test]
    async fn a_wake_up_before_the_wait_is_kept() {
        let hub = Wakeups::default();
        let listener = hub.listen(&keys(&["a", "b"]));
        hub.wake(&Key::parse("b").unwrap());
        let woken = listener.woken();
        assert!(timeout(Duration::from_secs(5), woken).await.is_ok());
    }

    #[tokio::test]
    async fn nothing_stays_when_nobody_listens() {
        let hub = Wakeups::default();
        let one = hub.listen(&keys(&["a", "b"]));
        let two = hub.listen(&keys(&["b"]));
        drop(one);
        assert_eq!(hub.keys(), 1);
        drop(two);
        assert_eq!(hub.keys(), 0);
    }
}
