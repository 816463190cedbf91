//! The mutex keeps the contract inside one process: both services use the same one.

use std::sync::Arc;

use anyhow::{Result, ensure};
use doublebook::lock::systems::Mutex;

use crate::pair::{Pair, get, is_taken, wish};

async fn connect() -> Result<(Pair, ())> {
    let mutex = Arc::new(Mutex::default());
    Ok((Pair::over(mutex.clone(), mutex), ()))
}

crate::every_lock!(connect());

#[tokio::test]
async fn two_replicas_do_not_exclude_each_other() -> Result<()> {
    let pair = Pair::new(Mutex::default(), Mutex::default());
    let _held = get(&pair.ana, wish(&["a"])).await?;
    ensure!(
        !is_taken(&pair.ben, &["a"]).await?,
        "a mutex of one process excluded another"
    );
    Ok(())
}

#[tokio::test]
async fn it_has_no_token_and_no_deadline_and_is_given_back_when_abandoned() -> Result<()> {
    let (pair, ()) = connect().await?;
    let held = get(&pair.ana, wish(&["a"])).await?;
    ensure!(held.tokens().iter().all(|(_, token)| token.is_none()));
    ensure!(held.deadline().is_none());
    held.abandon();
    drop(get(&pair.ben, wish(&["a"])).await?);
    Ok(())
}
