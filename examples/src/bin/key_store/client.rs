//! A blocking client that uses neither timer, so it sees only the behavior of the server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The longest wait for an answer, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A connection to the server.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn ask(&mut self, command: &str) -> io::Result<String> {
        self.stream.get_mut().write_all(format!("{command}\n").as_bytes())?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer)?;
        match answer.pop() {
            Some(_) => Ok(answer),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("'{command}': no answer"))),
        }
    }

    /// Sends a command and returns its answer as a number.
    pub(crate) fn number(&mut self, command: &str) -> io::Result<u64> {
        self.ask(command)?.parse().map_err(io::Error::other)
    }

    /// Sends nothing until the server closes the connection.
    pub(crate) fn until_closed(mut self) -> io::Result<()> {
        self.stream.read_to_end(&mut Vec::new()).map(|_| ())
    }
}
