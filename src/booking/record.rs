//! A booking as it is kept.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// A booking, and what it read and wrote: two of one seat that read the same version are a double booking.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BookingRecord {
    /// Its number: it grows in the order of the commits of one seat.
    pub seq: i64,
    /// The booking's own id.
    pub id: Uuid,
    /// The attempt that made it.
    pub attempt: Uuid,
    /// The seat.
    pub seat: String,
    /// The buyer.
    pub buyer: String,
    /// The replica that sold it.
    pub replica: String,
    /// The lock system that was asked, if locking was on.
    #[schema(required)]
    pub lock: Option<String>,
    /// The room's epoch.
    pub epoch: i64,
    /// The fencing token, if the lock system has them.
    #[schema(required)]
    pub token: Option<i64>,
    /// The version of the seat's row that was read.
    pub version_read: i64,
    /// The version of the seat's row that was written.
    pub version_written: i64,
}
