//! Free loopback ports.
//!
//! A port found free may be taken before it is used: who starts a server on one tries again on another, a few times.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// How often a server is started on another port before its failure is taken for something else than a taken port.
pub const PORT_ATTEMPTS: u32 = 3;

/// A loopback port that nobody listens on now.
pub fn free() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Fails if this loopback port cannot be listened on now.
pub fn check_free(port: u16) -> io::Result<()> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(drop)
}
