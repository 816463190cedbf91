//! A network cable that can hang: it forwards connections to a server until it is told to hang.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Result;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_util::task::AbortOnDropHandle;

pub struct Forwarder {
    address: SocketAddr,
    hang: Arc<Notify>,
    _accepting: AbortOnDropHandle<()>,
}

impl Forwarder {
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let hang = Arc::new(Notify::new());
        Ok(Self {
            address: listener.local_addr()?,
            hang: hang.clone(),
            _accepting: AbortOnDropHandle::new(tokio::spawn(accept(listener, server, hang))),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whatever is connected now stays open and hears nothing more. New connections work.
    pub fn hang(&self) {
        self.hang.notify_waiters();
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, hang: Arc<Notify>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(forward(client, server, hang.clone()));
    }
}

async fn forward(mut client: TcpStream, server: SocketAddr, hang: Arc<Notify>) -> Result<()> {
    let mut server = TcpStream::connect(server).await?;
    tokio::select! {
        ended = copy_bidirectional(&mut client, &mut server) => { ended?; }
        () = hang.notified() => std::future::pending().await,
    }
    Ok(())
}
