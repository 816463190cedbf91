//! A network cable with faults: it forwards connections to a server until it is told what befalls them.

use std::{net::SocketAddr, pin::pin};

use anyhow::Result;
use tokio::{
    io::{copy, sink},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::task::AbortOnDropHandle;

pub struct Forwarder {
    address: SocketAddr,
    fate: watch::Sender<Fate>,
    open: watch::Sender<bool>,
    _accepting: AbortOnDropHandle<()>,
}

/// What befalls the connections that are there when it is told. New ones work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Forwarded,
    /// They stay open and carry nothing more.
    Hung,
    /// They stay open, and what the server answers is lost.
    Deaf,
    /// They are closed, hung ones and deaf ones, too.
    Cut,
}

impl Forwarder {
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let fate = watch::Sender::new(Fate::Forwarded);
        let open = watch::Sender::new(true);
        let accepting = accept(listener, server, fate.clone(), open.subscribe());
        Ok(Self {
            address,
            fate,
            open,
            _accepting: AbortOnDropHandle::new(tokio::spawn(accepting)),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whatever is connected now stays open and hears nothing more. New connections work.
    pub fn hang(&self) {
        self.fate.send_replace(Fate::Hung);
    }

    /// From now on, whatever is connected is heard by the server and hears nothing more. New connections work.
    pub fn lose_replies(&self) {
        self.fate.send_replace(Fate::Deaf);
    }

    /// Closes whatever is connected now. New connections work.
    pub fn cut(&self) {
        self.fate.send_replace(Fate::Cut);
    }

    /// Closes whatever is connected, and whatever connects until the line is mended.
    pub fn cut_for_good(&self) {
        self.open.send_replace(false);
        self.cut();
    }

    pub fn mend(&self) {
        self.open.send_replace(true);
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    fate: watch::Sender<Fate>,
    open: watch::Receiver<bool>,
) {
    while let Ok((client, _)) = listener.accept().await {
        if *open.borrow() {
            tokio::spawn(forward(client, server, fate.subscribe()));
        }
    }
}

async fn forward(
    mut client: TcpStream,
    server: SocketAddr,
    mut fate: watch::Receiver<Fate>,
) -> Result<()> {
    let mut server = TcpStream::connect(server).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let mut asked = pin!(copy(&mut from_client, &mut to_server));
    tokio::select! {
        _ = &mut asked => return Ok(()),
        _ = copy(&mut from_server, &mut to_client) => return Ok(()),
        _ = fate.changed() => {}
    }
    if *fate.borrow_and_update() == Fate::Deaf {
        let mut nowhere = sink();
        tokio::select! {
            _ = &mut asked => return Ok(()),
            _ = copy(&mut from_server, &mut nowhere) => return Ok(()),
            _ = fate.changed() => {}
        }
    }
    fate.wait_for(|fate| *fate == Fate::Cut).await?;
    Ok(())
}
