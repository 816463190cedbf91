//! Distributed locks as a library: ask for keys, hold them for a while, give them back.
//!
//! It promises one behaviour over many lock systems. A system grants, renews and releases ([`LockSystem`]);
//! waiting, back-off, renewal, deadlines and giving back what nobody took are written once, above it.
//! A system that cannot be reached is never "acquired" and never "taken" ([`LockError`]).
//!
//! It does not promise mutual exclusion by itself. Every lock that expires can be lost without its holder
//! noticing in time; only a [`Token`] that is checked where the data is written refuses a late holder.
//! What each system can and cannot do is data: [`Guarantees`].
//!
//! Nothing here knows what is locked. Read on in [`system`], then [`waiting`], then [`held`].
//!
//! [`LockSystem`]: crate::lock::LockSystem
//! [`LockError`]: crate::lock::LockError
//! [`Token`]: crate::lock::Token
//! [`Guarantees`]: crate::lock::Guarantees
//! [`system`]: crate::lock::system
//! [`waiting`]: crate::lock::waiting
//! [`held`]: crate::lock::held

pub mod key;

pub mod many;

pub mod claim;

pub mod system;

pub mod guarantees;

pub mod error;

pub mod service;

pub mod queue;

pub mod waiting;

pub mod wakeups;

pub mod backoff;

pub mod held;

mod lease;

mod renewal;

mod releasing;

pub mod trips;

mod gauge;

mod unpoisoned;

pub mod systems;

pub use claim::{Claim, Grant, Owner, Token};
pub use error::{LockError, Lost};
pub use guarantees::{Guarantees, LockName};
pub use held::Held;
pub use key::{BadKey, Key};
pub use many::{Keys, NoKeys};
pub use releasing::{ReleaseOutcome, Releasing};
pub use service::{LockService, Wish};
pub use system::{Answer, LockSystem, ReleaseMode, Released, Renewal, ServerId};
pub use trips::Trips;
pub use waiting::Waiting;
pub use wakeups::Wakeups;
