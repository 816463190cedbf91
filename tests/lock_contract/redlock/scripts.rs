//! What the scripts do at one node. The model (`tests/redlock_model.rs`) tells them again in Rust; here they are run.

use anyhow::{Result, ensure};

use super::nodes::Nodes;

/// What all others begin with.
pub const NODE: &str = include_str!("../../../src/lock/systems/redlock/node.lua");
const ASK: &str = include_str!("../../../src/lock/systems/redlock/ask.lua");
const WRITE: &str = include_str!("../../../src/lock/systems/redlock/write.lua");
const NAME: &str = include_str!("../../../src/lock/systems/redlock/name.lua");
const RENEW: &str = include_str!("../../../src/lock/systems/redlock/renew.lua");
pub const RELEASE: &str = include_str!("../../../src/lock/systems/redlock/release.lua");

const LOCK: &str = "{doublebook}:redlock:lock:a";
const ANA: &str = "aa";
const BEN: &str = "bb";

/// The first of five nodes, a member of the Redlock "x".
struct Node(Nodes);

impl Node {
    async fn start() -> Result<Self> {
        let nodes = Nodes::start().await?;
        nodes
            .run::<()>(0, &["SET", "{doublebook}:redlock:member", "x"])
            .await?;
        Ok(Self(nodes))
    }

    async fn of(&self, mark: &str, script: &str, arguments: &[&str]) -> Result<Vec<String>> {
        let script = format!("{NODE}{script}");
        let member = "{doublebook}:redlock:member";
        let record = "{doublebook}:redlock:record";
        let mut words = vec!["EVAL", &script, "3", member, record, LOCK, mark];
        words.extend(arguments);
        self.0.run(0, &words).await
    }

    async fn run(&self, script: &str, arguments: &[&str]) -> Result<Vec<String>> {
        self.of("x", script, arguments).await
    }

    /// The floor that it names to this owner's ask.
    async fn ask(&self, owner: &str, number: &str) -> Result<i64> {
        let answer = self.run(ASK, &[owner, number, "60000"]).await?;
        ensure!(answer[0] == "granted", "{answer:?}");
        Ok(answer[1].parse()?)
    }

    async fn write(&self, owner: &str, token: i64) -> Result<String> {
        let answer = self.run(WRITE, &[owner, &token.to_string()]).await?;
        Ok(answer[0].clone())
    }

    async fn value(&self) -> Result<Option<String>> {
        self.0.run(0, &["GET", LOCK]).await
    }
}

#[tokio::test]
async fn a_name_replaces_only_the_one_that_was_seen() -> Result<()> {
    let node = Node::start().await?;
    for (words, has) in [
        (&["look"][..], ""),
        (&["take", "first", ""], "first"),
        // Drawn by somebody who saw no name there.
        (&["take", "second", ""], "first"),
        (&["take", "third", "first"], "third"),
        // The reply was lost.
        (&["take", "third", "first"], "third"),
        (&["look"], "third"),
        (&["forget"], ""),
        (&["look"], ""),
    ] {
        let answer = node.run(NAME, words).await?;
        ensure!(answer == ["name", has], "{words:?}: {answer:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_token_is_taken_from_the_owner_and_only_if_it_is_larger() -> Result<()> {
    let node = Node::start().await?;
    let floor = node.ask(ANA, "1").await?;
    ensure!(node.write(BEN, floor).await? == "lapsed");
    ensure!(node.write(ANA, floor).await? == "written");
    ensure!(node.value().await? == Some(format!("aa|1|{floor}")));
    // The reply was lost.
    ensure!(node.write(ANA, floor).await? == "written");
    ensure!(node.write(ANA, floor - 1).await? == "outrun");
    ensure!(node.write(ANA, floor + 5).await? == "written");
    let rest: i64 = node.0.run(0, &["PTTL", LOCK]).await?;
    ensure!(rest > 0, "the write took the expiry away");

    node.0.run::<()>(0, &["DEL", LOCK]).await?;
    ensure!(node.write(ANA, floor + 9).await? == "lapsed");
    ensure!(node.ask(BEN, "1").await? > floor + 5);
    ensure!(node.write(BEN, floor + 5).await? == "outrun");
    Ok(())
}

/// Requests overtake each other: what a later ask got is not freed by the end of an earlier one.
#[tokio::test]
async fn the_end_of_an_earlier_ask_does_not_free_what_a_later_one_got() -> Result<()> {
    let node = Node::start().await?;
    node.ask(ANA, "1").await?;
    node.ask(ANA, "2").await?;
    ensure!(node.run(RELEASE, &[ANA, "1", "0"]).await? == ["no"]);
    ensure!(node.value().await?.is_some(), "the later ask lost its key");
    // The first one arrives again, late.
    node.ask(ANA, "1").await?;
    ensure!(node.run(RELEASE, &[ANA, "1", "0"]).await? == ["no"]);
    ensure!(node.run(RELEASE, &[ANA, "2", "0"]).await? == ["yes"]);
    ensure!(node.value().await?.is_none());
    Ok(())
}

/// Bugs 1 and 24.
#[tokio::test]
async fn a_stranger_neither_renews_nor_frees() -> Result<()> {
    let node = Node::start().await?;
    ensure!(node.run(RENEW, &[ANA, "60000"]).await? == ["no"]);
    ensure!(node.value().await?.is_none(), "a renewal made a key");
    node.ask(ANA, "1").await?;
    ensure!(node.run(RENEW, &[BEN, "60000"]).await? == ["no"]);
    ensure!(node.run(RELEASE, &[BEN, "", "0"]).await? == ["no"]);
    let taken = node.run(ASK, &[BEN, "1", "60000"]).await?;
    ensure!(taken[0] == "taken" && taken[2] == "0", "{taken:?}");
    ensure!(
        node.run(RELEASE, &[BEN, "", "1"]).await? == ["yes"],
        "blind"
    );
    Ok(())
}

#[tokio::test]
async fn a_node_of_another_redlock_and_an_empty_one_do_nothing() -> Result<()> {
    let node = Node::start().await?;
    for script in [ASK, WRITE, RENEW, RELEASE] {
        let foreign = node.of("y", script, &[ANA, "1", "60000"]).await?;
        ensure!(foreign == ["foreign"], "{foreign:?}");
    }
    node.0.run::<()>(0, &["FLUSHALL"]).await?;
    for script in [ASK, WRITE, RENEW, RELEASE] {
        let empty = node.run(script, &[ANA, "1", "60000"]).await?;
        ensure!(empty == ["empty"], "{empty:?}");
    }
    let keys: Vec<String> = node.0.run(0, &["KEYS", "*"]).await?;
    ensure!(keys.is_empty(), "{keys:?}");
    Ok(())
}
