//! A network cable with faults: it forwards connections to a server until it is told otherwise.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::task::AbortOnDropHandle;

pub struct Forwarder {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    _accepting: AbortOnDropHandle<()>,
}

/// Connections are numbered; a fault befalls those below its number.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    made: u64,
    cut: u64,
    hung: u64,
    muted: u64,
    dark: bool,
}

impl Forwarder {
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let faults = watch::Sender::default();
        Ok(Self {
            address: listener.local_addr()?,
            faults: faults.clone(),
            _accepting: AbortOnDropHandle::new(tokio::spawn(accept(listener, server, faults))),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whatever is connected now is closed. New connections work.
    pub fn cut(&self) {
        self.faults.send_modify(|faults| faults.cut = faults.made);
    }

    /// Whatever is connected now stays open and hears nothing more. New connections work.
    pub fn hang(&self) {
        self.faults.send_modify(|faults| faults.hung = faults.made);
    }

    /// Whatever is connected now still reaches the server, but what the server says is lost. New connections work.
    pub fn mute(&self) {
        self.faults.send_modify(|faults| faults.muted = faults.made);
    }

    /// Nothing gets through, on new connections either, until it is light again.
    pub fn dark(&self, dark: bool) {
        self.faults.send_modify(|faults| faults.dark = dark);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, faults: watch::Sender<Faults>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = faults.borrow().made;
        faults.send_modify(|faults| faults.made += 1);
        tokio::spawn(forward(number, client, server, faults.subscribe()));
    }
}

async fn forward(
    number: u64,
    mut client: TcpStream,
    server: SocketAddr,
    mut faults: watch::Receiver<Faults>,
) -> Result<()> {
    let mut server = TcpStream::connect(server).await?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let (up, down) = (faults.clone(), faults.clone());
    tokio::select! {
        // Also when the forwarder is dropped.
        _ = faults.wait_for(|faults| number < faults.cut) => Ok(()),
        ended = carry(from_client, to_server, up, number, |_| false) => ended,
        ended = carry(from_server, to_client, down, number, |faults| number < faults.muted) => ended,
    }
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut faults: watch::Receiver<Faults>,
    number: u64,
    is_lost: impl Fn(&Faults) -> bool,
) -> Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        let lost = {
            let passes = |faults: &Faults| !faults.dark && number >= faults.hung;
            is_lost(&*faults.wait_for(passes).await?)
        };
        if !lost {
            to.write_all(&bytes[..read]).await?;
        }
    }
}
