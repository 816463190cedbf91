//! What must be true of the database before the first replica of a run starts.

use anyhow::Context;

use crate::database::{Database, DatabaseError, REQUEST_LIMIT};
use crate::lock::LockName;
use crate::peers;
use crate::room::{self, Layout, RoomName, Switches};

/// Brings the database up to date, makes the room `main`, raises the epoch of every room (the private lock servers
/// of a run begin their counters anew), and, in a database that is private to the run, forgets the replicas and lock
/// servers of earlier runs. Tells what people should know.
pub async fn prepare(
    database_url: &str,
    lock_servers: &[LockName],
    private: bool,
) -> anyhow::Result<Vec<String>> {
    Database::migrate(database_url).await?;
    let database = Database::open(database_url)?;
    let lock = if lock_servers.contains(&LockName::Redis) {
        LockName::Redis
    } else {
        LockName::Table
    };
    make_main(&database, lock).await?;
    let told = settle_main(&database, lock_servers).await?;
    raise_epochs(&database).await?;
    if private {
        forget_earlier_runs(&database).await?;
    }
    database.close(REQUEST_LIMIT).await;
    Ok(told)
}

/// Makes the room `main` if it is not there.
pub async fn make_main(database: &Database, lock: LockName) -> anyhow::Result<()> {
    let main = RoomName::main();
    let mut session = database.read(REQUEST_LIMIT).await?;
    if room::store::load(&mut session, &main, &[]).await?.is_some() {
        return Ok(());
    }
    let mut transaction = database.begin(REQUEST_LIMIT).await?;
    let (layout, switches) = (Layout::default(), Switches::for_people(lock));
    room::store::make(&mut transaction, &main, &layout, &switches).await?;
    transaction
        .commit()
        .await
        .map_err(DatabaseError::from)
        .context("cannot make the room main")
}

/// Moves `main` to a lock system that is there, if its own is not this time.
async fn settle_main(
    database: &Database,
    lock_servers: &[LockName],
) -> anyhow::Result<Vec<String>> {
    let is_there = |lock: LockName| match lock {
        LockName::Mutex | LockName::Table | LockName::Row => true,
        lock => lock_servers.contains(&lock),
    };
    let mut told = Vec::new();
    let mut transaction = database.begin(REQUEST_LIMIT).await?;
    let change = |before: &Switches| {
        if is_there(before.lock) {
            return before.clone();
        }
        told.push(format!(
            "the room main used {}, which is not there this time: it now uses table",
            before.lock
        ));
        Switches {
            lock: LockName::Table,
            ..before.clone()
        }
    };
    room::store::change_switches(&mut transaction, &RoomName::main(), change).await?;
    transaction.commit().await.map_err(DatabaseError::from)?;
    Ok(told)
}

async fn raise_epochs(database: &Database) -> anyhow::Result<()> {
    let mut transaction = database.begin(REQUEST_LIMIT).await?;
    room::store::raise_all_epochs(&mut transaction).await?;
    Ok(transaction.commit().await.map_err(DatabaseError::from)?)
}

async fn forget_earlier_runs(database: &Database) -> anyhow::Result<()> {
    let mut transaction = database.begin(REQUEST_LIMIT).await?;
    room::store::forget_lock_servers(&mut transaction).await?;
    peers::forget_all(&mut transaction).await?;
    Ok(transaction.commit().await.map_err(DatabaseError::from)?)
}
