//! `doublebook health`: asks a replica whether it can work. For containers, where there is no other program to ask.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

/// How long the replica may take; it gives its database two seconds.
const LIMIT: Duration = Duration::from_secs(3);

/// Asks a replica whether it can work.
#[derive(Debug, Args)]
pub struct HealthArgs {
    /// The address that the replica on this machine listens on
    #[arg(long, env = "DOUBLEBOOK_LISTEN", default_value = "127.0.0.1:3001")]
    pub listen: SocketAddr,
}

/// Ends well if the replica is ready.
pub async fn run(args: HealthArgs) -> anyhow::Result<()> {
    let url = format!("http://{}/readyz", reachable(args.listen));
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(LIMIT)
        .build()?;
    let answer = client.get(&url).send().await;
    let answer = answer.with_context(|| format!("{url} does not answer"))?;
    if !answer.status().is_success() {
        bail!("{url} answers {}", answer.status());
    }
    Ok(())
}

/// Who listens on all addresses is reached on the loopback one.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::reachable;

    #[test]
    fn all_addresses_are_reached_on_the_loopback_one() {
        for (listen, asked) in [
            ("0.0.0.0:3001", "127.0.0.1:3001"),
            ("[::]:3001", "[::1]:3001"),
            ("10.0.0.7:3001", "10.0.0.7:3001"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), asked);
        }
    }
}
