//! A Redlock of five nodes, beside its own three scripts, each sent to all nodes at once.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use ::redis::aio::MultiplexedConnection;
use ::redis::{Script, ScriptInvocation};
use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use doublebook::lock::systems;
use doublebook::lock::systems::redlock::quorum::majority;
use doublebook::stack::{Launcher, redlock};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use futures_util::stream::FuturesUnordered;

use super::{AT_MOST, Bare, Lock, Once, Server, System, layered, owner, redis};

pub struct Redlock;

macro_rules! script {
    ($file:literal) => {
        LazyLock::new(|| {
            Script::new(concat!(
                include_str!("../../../src/lock/systems/redlock/node.lua"),
                include_str!(concat!("../../../src/lock/systems/redlock/", $file))
            ))
        })
    };
}

static ASK: LazyLock<Script> = script!("ask.lua");
static WRITE: LazyLock<Script> = script!("write.lua");
static RELEASE: LazyLock<Script> = script!("release.lua");

/// The mark of the nodes, their record and a lock: those of another Redlock than the one that is measured.
const KEYS: [&str; 3] = [
    "{doublebook}:bare:member",
    "{doublebook}:bare:record",
    "{doublebook}:bare:lock",
];

/// The mark.
const MARK: &str = "0123456789abcdef0123456789abcdef";

#[async_trait(?Send)]
impl System for Redlock {
    fn name(&self) -> &'static str {
        "redlock"
    }

    async fn start(&self, launcher: &Launcher, folder: &Path) -> Result<Server> {
        let nodes = redlock::start(launcher, folder).await?;
        let urls: Vec<String> = nodes.iter().map(|node| node.url()).collect();
        Ok(Server::new(urls.join(","), nodes))
    }

    async fn version(&self, address: &str) -> Result<String> {
        let first = urls(address).next().context("no node")?;
        let version = redis::version(first).await?;
        Ok(format!("{} nodes, {version}", urls(address).count()))
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        let urls: Vec<&str> = urls(address).collect();
        Ok(layered(systems::Redlock::open(&urls)?))
    }

    async fn bare(&self, address: &str) -> Result<Vec<Bare>> {
        let mut nodes = try_join_all(urls(address).map(redis::connect)).await?;
        for node in &mut nodes {
            let mut mark = ::redis::cmd("SET");
            mark.arg(&[KEYS[0], MARK]).exec_async(node).await?;
            // A node that loads one when it is asked is left behind by the majority.
            for script in [&ASK, &WRITE, &RELEASE] {
                script.prepare_invoke().load_async(node).await?;
            }
        }
        Ok(vec![Bare {
            what: "its own three scripts, each to five nodes at once",
            at_most: Some(AT_MOST),
            once: own_scripts(nodes.into()),
        }])
    }

    /// Those to all nodes together.
    async fn requests(&self, address: &str) -> Result<Option<u64>> {
        let each = try_join_all(urls(address).map(redis::scripts_run)).await?;
        Ok(Some(each.into_iter().sum()))
    }
}

fn urls(address: &str) -> impl Iterator<Item = &str> {
    address.split(',')
}

fn own_scripts(nodes: Arc<[MultiplexedConnection]>) -> Once {
    Box::new(move || {
        let nodes = nodes.clone();
        Box::pin(async move {
            let owner = owner();
            let mut ask = call(&ASK, &owner);
            ask.arg(1).arg(redis::milliseconds());
            let granted = run(&nodes, ask, "granted").await?;
            let floors = granted.iter().filter_map(|answer| answer.get(1));
            let floors: Vec<u64> = floors
                .map(|floor| floor.parse())
                .collect::<Result<_, _>>()?;
            let token = floors.into_iter().max().context("no node named a token")?;
            let mut write = call(&WRITE, &owner);
            write.arg(token);
            run(&nodes, write, "written").await?;
            let mut release = call(&RELEASE, &owner);
            release.arg("").arg(0);
            run(&nodes, release, "yes").await?;
            Ok(())
        })
    })
}

fn call(script: &'static Script, owner: &str) -> ScriptInvocation<'static> {
    let mut call = script.key(&KEYS);
    call.arg(MARK).arg(owner);
    call
}

/// Runs a script on all nodes at once, until a majority has answered: the lock waits for no more, either. The others go
/// on by themselves, since a request that nobody waits for may not be sent at all.
async fn run(
    nodes: &[MultiplexedConnection],
    call: ScriptInvocation<'static>,
    expected: &str,
) -> Result<Vec<Vec<String>>> {
    let call = Arc::new(call);
    let calls = nodes.iter().map(|node| {
        let (mut node, call) = (node.clone(), call.clone());
        async move { call.invoke_async::<Vec<String>>(&mut node).await }
    });
    let mut under_way: FuturesUnordered<_> = calls.collect();
    let mut answers = Vec::with_capacity(nodes.len());
    while answers.len() < majority(nodes.len()) {
        let answer = under_way.next().await.context("too few nodes")??;
        ensure!(
            answer.first().is_some_and(|word| word == expected),
            "a node answered {answer:?} instead of {expected:?}"
        );
        answers.push(answer);
    }
    if !under_way.is_empty() {
        tokio::spawn(async move { while under_way.next().await.is_some() {} });
    }
    Ok(answers)
}
