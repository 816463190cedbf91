//! Ports that nobody else will take meanwhile.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range that the system gives to outgoing connections, so that no client takes a port between this look and
/// the start of the replica.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// `count` free neighbouring ports on the loopback address.
pub fn free_ports(count: u16) -> u16 {
    // Another run of these tests at the same time begins elsewhere.
    let offset = (std::process::id().wrapping_mul(131) % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(count, Ordering::Relaxed);
        let first = FIRST + (offset.wrapping_add(step)) % (COUNT - count);
        if (first..first + count).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return first;
        }
    }
    panic!("no {count} free ports in {FIRST}..{}", FIRST + COUNT)
}
