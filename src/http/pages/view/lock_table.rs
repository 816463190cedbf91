//! The lock systems and what each guarantees, as rows of a table.

use crate::http::replicas::ShownLock;
use crate::lock::Guarantees;

/// A lock system in the table.
#[derive(Debug)]
pub struct LockRow {
    /// Its name.
    pub name: &'static str,
    /// Why it cannot be chosen here, if it cannot.
    pub why_not: Option<String>,
    /// Whether the room uses it.
    pub chosen: bool,
    /// What it guarantees.
    pub guarantees: &'static Guarantees,
    /// Its shortest lease, or whose it is, or that it has none.
    pub lease: String,
}

/// All lock systems.
pub fn lock_table(locks: &[ShownLock], chosen: &str) -> Vec<LockRow> {
    let row = |shown: &ShownLock| LockRow {
        name: shown.lock.as_str(),
        why_not: shown.why_not.clone(),
        chosen: shown.lock.as_str() == chosen,
        guarantees: shown.guarantees,
        lease: lease(shown.guarantees),
    };
    locks.iter().map(row).collect()
}

fn lease(guarantees: &Guarantees) -> String {
    match guarantees.minimum_ttl_ms {
        _ if !guarantees.renew_applies => "none".to_owned(),
        _ if !guarantees.ttl_applies => "the session's".to_owned(),
        Some(minimum) => format!("at least {minimum} ms"),
        None => "as set".to_owned(),
    }
}
