//! The cases. Each says in words what went wrong, so that a broken system can be shown to fail it.

pub mod every_lock;
pub mod leases;
