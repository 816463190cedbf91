//! A network cable with faults: it forwards connections to a server until it is told otherwise.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};
use tokio_util::task::AbortOnDropHandle;

pub struct Forwarder {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    kept: Arc<AtomicUsize>,
    _accepting: AbortOnDropHandle<()>,
}

/// Connections are numbered; a fault befalls those below its number.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    made: u64,
    cut: u64,
    hung: u64,
    muted: u64,
    mutes_all: bool,
    refuses: bool,
    delayed: u64,
    delay: Delay,
    dark: bool,
}

/// What becomes of what clients send on delayed connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Delay {
    #[default]
    Keep,
    Lose,
    Deliver,
}

impl Forwarder {
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let faults = watch::Sender::default();
        let kept = Arc::default();
        let cable = Cable {
            server,
            faults: faults.clone(),
            kept: Arc::clone(&kept),
        };
        Ok(Self {
            address: listener.local_addr()?,
            faults,
            kept,
            _accepting: AbortOnDropHandle::new(tokio::spawn(cable.accept(listener))),
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

    /// As [`mute`](Self::mute), for connections that are made from now on, too, until it ends.
    pub fn mute_all(&self, begins: bool) {
        self.faults.send_modify(|faults| {
            (faults.muted, faults.mutes_all) = (faults.made, begins);
        });
    }

    /// Whatever is connected now is closed, and so is what connects from now on, until it ends.
    pub fn refuse(&self, begins: bool) {
        self.faults.send_modify(|faults| {
            (faults.cut, faults.refuses) = (faults.made, begins);
        });
    }

    /// Nothing gets through, on new connections either, until it is light again.
    pub fn dark(&self, dark: bool) {
        self.faults.send_modify(|faults| faults.dark = dark);
    }

    /// What is sent to the server on connections that are open now is kept from now on. New connections work.
    pub fn keep(&self) {
        self.faults.send_modify(|faults| {
            (faults.delayed, faults.delay) = (faults.made, Delay::Keep);
        });
    }

    /// How many bytes were kept.
    pub fn kept(&self) -> usize {
        self.kept.load(Ordering::SeqCst)
    }

    /// What is sent on these connections after what was kept is lost.
    pub fn lose(&self) {
        self.faults.send_modify(|faults| faults.delay = Delay::Lose);
    }

    /// What was kept reaches the server, once its client is gone.
    pub fn deliver(&self) {
        self.faults
            .send_modify(|faults| faults.delay = Delay::Deliver);
    }
}

#[derive(Clone)]
struct Cable {
    server: SocketAddr,
    faults: watch::Sender<Faults>,
    kept: Arc<AtomicUsize>,
}

impl Cable {
    async fn accept(self, listener: TcpListener) {
        while let Ok((client, _)) = listener.accept().await {
            let number = self.faults.borrow().made;
            self.faults.send_modify(|faults| faults.made += 1);
            tokio::spawn(self.clone().forward(number, client));
        }
    }

    async fn forward(self, number: u64, client: TcpStream) -> Result<()> {
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = TcpStream::connect(self.server).await?.into_split();
        let mut faults = self.faults.subscribe();
        let kept = self.kept.clone();
        // The forwarder that is dropped cuts them, too.
        drop(self);
        let (up, down) = (faults.clone(), faults.clone());
        tokio::select! {
            _ = faults.wait_for(|faults| faults.refuses || number < faults.cut) => Ok(()),
            ended = carry_up(from_client, to_server, up, number, kept) => ended,
            ended = carry_down(from_server, to_client, down, number) => ended,
        }
    }
}

async fn carry_up(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    mut faults: watch::Receiver<Faults>,
    number: u64,
    kept: Arc<AtomicUsize>,
) -> Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    let mut waiting = Vec::new();
    loop {
        let read = client.read(&mut bytes).await.unwrap_or(0);
        let now = *faults
            .wait_for(|faults| !faults.dark && number >= faults.hung)
            .await?;
        let delay = (number < now.delayed).then_some(now.delay);
        match delay {
            None if read == 0 => return Ok(()),
            None => server.write_all(&bytes[..read]).await?,
            Some(Delay::Keep) if read > 0 => {
                waiting.extend_from_slice(&bytes[..read]);
                kept.fetch_add(read, Ordering::SeqCst);
            }
            Some(_) if read > 0 => {}
            Some(_) => {
                let deliver = |faults: &Faults| faults.delay == Delay::Deliver;
                faults.wait_for(deliver).await?;
                server.write_all(&waiting).await?;
                std::future::pending().await
            }
        }
    }
}

async fn carry_down(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    mut faults: watch::Receiver<Faults>,
    number: u64,
) -> Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let read = server.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        let now = *faults
            .wait_for(|faults| !faults.dark && number >= faults.hung)
            .await?;
        if !now.mutes_all && number >= now.muted {
            client.write_all(&bytes[..read]).await?;
        }
    }
}
