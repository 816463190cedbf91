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

/// Whether this process listens on this port of loopback or of all addresses, as far as the system tells. Where it
/// does not tell, the answer is yes.
#[cfg(target_os = "linux")]
pub fn is_listened_on_by(port: u16, pid: nix::unistd::Pid) -> bool {
    let tables = ["tcp", "tcp6"].map(|table| std::fs::read_to_string(format!("/proc/net/{table}")));
    let sockets: Vec<String> = tables
        .iter()
        .flatten()
        .flat_map(|table| table.lines().skip(1))
        .filter_map(|line| listening_socket(line, port))
        .collect();
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    files
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .any(|link| {
            sockets
                .iter()
                .any(|socket| link.as_os_str() == socket.as_str())
        })
}

#[cfg(not(target_os = "linux"))]
pub fn is_listened_on_by(_: u16, _: nix::unistd::Pid) -> bool {
    true
}

/// The socket of a line of `/proc/net/tcp` that listens on this port, as a link in `/proc/pid/fd` names it. (proc(5).)
#[cfg(target_os = "linux")]
fn listening_socket(line: &str, port: u16) -> Option<String> {
    /// `TCP_LISTEN` of the kernel's `tcp_states.h`.
    const LISTENING: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let (_, local_port) = local.rsplit_once(':')?;
    let is_it = *state == LISTENING && u16::from_str_radix(local_port, 16) == Ok(port);
    is_it.then(|| format!("socket:[{inode}]"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use nix::unistd::Pid;

    use super::{free, is_listened_on_by};

    #[test]
    fn who_listens_on_a_port_is_known() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_listened_on_by(port, Pid::this()));
        assert!(!is_listened_on_by(port, Pid::from_raw(1)));
        assert!(!is_listened_on_by(free().unwrap(), Pid::this()));
    }
}
