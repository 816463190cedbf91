//! Locking a short-lived `std` mutex whose data is consistent after every statement.
//!
//! A panic elsewhere while such a mutex is locked must not stop every lock of the process, so poison is ignored.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
