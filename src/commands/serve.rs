//! `doublebook serve`: one replica.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Runs one replica.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The name of this replica, one for each that shares the database
    #[arg(long, env = "DOUBLEBOOK_NAME", default_value = "A")]
    pub name: String,

    /// The address to listen on
    #[arg(long, env = "DOUBLEBOOK_LISTEN", default_value = "127.0.0.1:3001")]
    pub listen: SocketAddr,

    /// The URL under which the other replicas reach this one [default: http:// and the address listened on]
    #[arg(long, env = "DOUBLEBOOK_ADVERTISE", value_name = "URL")]
    pub advertise: Option<String>,

    /// The database shared by all replicas [default: doublebook.db in the data folder]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database: Option<String>,

    /// The Redis whose locks are used; without it there are none
    #[arg(long, env = "REDIS_URL", hide_env_values = true, value_name = "URL")]
    pub redis_url: Option<String>,

    /// Refuse requests that ask for a pause
    #[arg(long, env = "DOUBLEBOOK_NO_FAILPOINTS")]
    pub no_failpoints: bool,

    /// A name under which browsers may reach this replica, besides localhost (repeat it for more)
    #[arg(
        long,
        env = "DOUBLEBOOK_ALLOW_HOST",
        value_delimiter = ',',
        value_name = "HOST"
    )]
    pub allow_host: Vec<String>,

    /// The folder of the embedded database
    #[arg(
        long,
        env = "DOUBLEBOOK_DATA_DIR",
        default_value = ".doublebook",
        value_name = "FOLDER"
    )]
    pub data_dir: PathBuf,
}

/// Runs one replica until it is told to stop.
pub async fn run(args: ServeArgs) -> anyhow::Result<()> {
    anyhow::bail!(
        "replica {} cannot run yet: this version has none",
        args.name
    )
}
