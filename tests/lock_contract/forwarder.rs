//! A network cable: it forwards connections to a server, until it is told to misbehave.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::Notify,
};
use tokio_util::task::AbortOnDropHandle;

pub struct Forwarder {
    address: SocketAddr,
    cable: Arc<Cable>,
    _accepting: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Cable {
    hang: Notify,
    cut: Notify,
    swallow_replies: AtomicBool,
}

impl Forwarder {
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let cable = Arc::<Cable>::default();
        Ok(Self {
            address: listener.local_addr()?,
            cable: cable.clone(),
            _accepting: AbortOnDropHandle::new(tokio::spawn(accept(listener, server, cable))),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whatever is connected now stays open and hears nothing more. New connections work.
    pub fn hang(&self) {
        self.cable.hang.notify_waiters();
    }

    /// Whatever is connected now is closed. New connections work.
    pub fn cut(&self) {
        self.cable.cut.notify_waiters();
    }

    /// Requests arrive, and their replies do not come back; or, with `false`, they do again.
    pub fn swallow_replies(&self, swallow: bool) {
        self.cable.swallow_replies.store(swallow, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, cable: Arc<Cable>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(forward(client, server, cable.clone()));
    }
}

async fn forward(client: TcpStream, server: SocketAddr, cable: Arc<Cable>) -> Result<()> {
    let (mut requests, to_client) = client.into_split();
    let (replies, mut to_server) = TcpStream::connect(server).await?.into_split();
    tokio::select! {
        ended = copy(&mut requests, &mut to_server) => { ended?; }
        ended = pass_replies(replies, to_client, &cable) => ended?,
        () = cable.cut.notified() => {}
        () = cable.hang.notified() => std::future::pending().await,
    }
    Ok(())
}

async fn pass_replies(
    mut replies: OwnedReadHalf,
    mut to_client: OwnedWriteHalf,
    cable: &Cable,
) -> Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let length = replies.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        if !cable.swallow_replies.load(Ordering::SeqCst) {
            to_client.write_all(&buffer[..length]).await?;
        }
    }
}
