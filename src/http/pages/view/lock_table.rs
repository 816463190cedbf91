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
    /// Its shortest lease, or that it has none.
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
    match (guarantees.ttl_applies, guarantees.minimum_ttl_ms) {
        (false, _) => "none".to_owned(),
        (true, None) => "as set".to_owned(),
        (true, Some(minimum)) => format!("at least {minimum} ms"),
    }
}
