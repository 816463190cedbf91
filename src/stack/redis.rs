//! A private Redis (or Valkey): in memory only, without a password, on loopback.
//!
//! It keeps nothing: stopped, killed or started again, it has forgotten everything, counters too. Locks must live with
//! that, so it is what we want to see.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use nix::unistd::Pid;

use super::child::Program;
use super::found::Known;
use super::server::{Kind, Place, Server};

/// A running Redis.
pub type RedisServer = Server<Redis>;

/// Redis, as a kind of server.
#[derive(Debug)]
pub struct Redis;

#[async_trait]
impl Kind for Redis {
    const KNOWN: Known = Known::Redis;
    const TITLE: &'static str = "Redis";
    /// It holds no data, so it needs a fraction of a second.
    const START_DEADLINE: Duration = Duration::from_secs(10);

    fn program(program: &Path, place: &Place) -> anyhow::Result<Program> {
        Ok(Program::new(program)
            .args(["--port", &place.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .args(["--maxmemory-policy", "noeviction"])
            .arg("--dir")
            .arg(&place.folder)
            .log_to(place.folder.join("redis.log")))
    }

    async fn answers(place: &Place, pid: Pid) -> bool {
        server_pid(place.port)
            .await
            .is_ok_and(|answering| answering == pid.as_raw())
    }

    fn url(port: u16) -> String {
        format!("redis://127.0.0.1:{port}")
    }
}

async fn server_pid(port: u16) -> anyhow::Result<i32> {
    let mut connection = ::redis::Client::open(Redis::url(port))?
        .get_multiplexed_async_connection()
        .await?;
    let () = ::redis::cmd("PING").exec_async(&mut connection).await?;
    let info: String = ::redis::cmd("INFO")
        .arg("server")
        .query_async(&mut connection)
        .await?;
    let pid = info
        .lines()
        .find_map(|line| line.strip_prefix("process_id:"));
    Ok(pid.context("INFO names no process_id")?.trim().parse()?)
}
