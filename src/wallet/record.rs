//! A transfer as it is kept.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Money;

/// A transfer, and what it read and wrote: two that read the same version of one wallet are a lost update.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TransferRecord {
    /// Its number: it grows in the order of the commits of one wallet.
    pub seq: i64,
    /// The transfer's own id.
    pub id: Uuid,
    /// The attempt that made it.
    pub attempt: Uuid,
    /// The giver.
    pub from: String,
    /// The taker.
    pub to: String,
    /// How much.
    pub amount: Money,
    /// The replica that moved it.
    pub replica: String,
    /// The lock system that was asked, if locking was on.
    #[schema(required)]
    pub lock: Option<String>,
    /// The room's epoch.
    pub epoch: i64,
    /// The version of the giver's row that was read.
    pub from_version_read: i64,
    /// The version of the giver's row that was written.
    pub from_version_written: i64,
    /// The version of the taker's row that was read.
    pub to_version_read: i64,
    /// The version of the taker's row that was written.
    pub to_version_written: i64,
}
