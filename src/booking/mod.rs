//! Selling a seat: what a seat is, the rule, the use case, its store.

mod book;
mod error;
mod record;
mod seat;
mod store;

pub use book::{Booking, Order, book};
pub use error::BookingError;
pub use record::BookingRecord;
pub use seat::Seat;
pub use store::records;
