//! Chromium, its driver, and what a test does with them.

mod chromium;
mod page;

pub use page::{Browser, address};
