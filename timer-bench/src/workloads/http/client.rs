//! The clients, which are cheap. They send the same bytes again and again.

use super::Load;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// The end of the response.
const END: &[u8] = b"hello";

pub(super) fn run(port: usize, load: Load) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let port = u16::try_from(port).map_err(io::Error::other)?;
    runtime.block_on(async {
        let all_connected = Arc::new(Barrier::new(load.connections));
        let mut clients = JoinSet::new();
        for _ in 0..load.connections {
            let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            socket.set_nodelay(true)?;
            // One after the other, because a server that counts instructions accepts slowly.
            request(&mut socket).await?;
            clients.spawn(requests(socket, load.requests, all_connected.clone()));
        }
        while let Some(client) = clients.join_next().await {
            client.map_err(io::Error::other)??;
        }
        Ok(())
    })
}

async fn requests(mut socket: TcpStream, requests: usize, all_connected: Arc<Barrier>) -> io::Result<()> {
    all_connected.wait().await;
    for _ in 0..requests {
        request(&mut socket).await?;
    }
    Ok(())
}

/// Sends a request and reads the response.
async fn request(socket: &mut TcpStream) -> io::Result<()> {
    let mut response = [0; 512];
    socket.write_all(REQUEST).await?;
    let mut length = 0;
    while !response[..length].ends_with(END) {
        match socket.read(&mut response[length..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => length += more,
        }
    }
    Ok(())
}
