//! A network cable with faults: it forwards connections to a server until it is told to cut them, to let them hang, or
//! to lose what the server answers.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, watch},
};
use tokio_util::task::AbortOnDropHandle;

pub struct Forwarder {
    address: SocketAddr,
    cable: Arc<Cable>,
    _accepting: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Cable {
    cut: Notify,
    hang: Notify,
    loses_replies: watch::Sender<bool>,
}

impl Forwarder {
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let cable = Arc::new(Cable::default());
        Ok(Self {
            address: listener.local_addr()?,
            _accepting: AbortOnDropHandle::new(tokio::spawn(accept(
                listener,
                server,
                cable.clone(),
            ))),
            cable,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends whatever is connected now. New connections work.
    pub fn cut(&self) {
        self.cable.cut.notify_waiters();
    }

    /// Whatever is connected now stays open and hears nothing more. New connections work.
    pub fn hang(&self) {
        self.cable.hang.notify_waiters();
    }

    /// From now on requests arrive and answers do not, on new connections as well.
    pub fn lose_replies(&self) {
        self.cable.loses_replies.send_replace(true);
    }

    /// New connections work again. One that has lost an answer hears nothing more.
    pub fn mend(&self) {
        self.cable.loses_replies.send_replace(false);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, cable: Arc<Cable>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(forward(client, server, cable.clone()));
    }
}

async fn forward(client: TcpStream, server: SocketAddr, cable: Arc<Cable>) -> Result<()> {
    let server = TcpStream::connect(server).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let loses = cable.loses_replies.subscribe();
    tokio::select! {
        ended = copy(&mut from_client, &mut to_server) => { ended?; }
        ended = pass_replies(&mut from_server, &mut to_client, loses) => ended?,
        () = cable.cut.notified() => {}
        () = cable.hang.notified() => std::future::pending().await,
    }
    Ok(())
}

async fn pass_replies(
    from_server: &mut OwnedReadHalf,
    to_client: &mut OwnedWriteHalf,
    loses: watch::Receiver<bool>,
) -> Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    let mut lost = false;
    loop {
        let count = from_server.read(&mut bytes).await?;
        lost |= *loses.borrow();
        match count {
            // The client hears nothing of the end of a connection whose answers are lost.
            0 if lost => std::future::pending().await,
            0 => return Ok(()),
            _ if lost => {}
            _ => to_client.write_all(&bytes[..count]).await?,
        }
    }
}
