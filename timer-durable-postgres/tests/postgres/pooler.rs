//! A pooler in transaction mode, between the store and the server of the tests.
//!
//! A client has a session of the server for the length of a transaction. The sessions take turns,
//! so the next transaction of a client gets another session if there are two or more. As PgBouncer
//! does by default since 1.22, the pooler makes a named statement known in every session, so a
//! store that relies on its session meets no error.
//!
//! The pooler answers `N` to a request for encryption and ignores the request to cancel a
//! statement. It does not support `copy`.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use super::Database;

/// The codes at the beginning of a connection.
const CANCEL: i32 = 80_877_102;
const ENCRYPT: [i32; 2] = [80_877_103, 80_877_104];
const VERSION: i32 = 196_608;

/// The message that ends an answer of the server.
const READY: u8 = b'Z';

/// A pooler that runs until it is dropped.
pub(super) struct Pooler {
    pool: Arc<Pool>,
    address: SocketAddr,
    database: String,
}

/// The state that the threads of the pooler share.
struct Pool {
    server: SocketAddr,
    database: String,
    /// The greeting of the server, which each client receives.
    greeting: Vec<u8>,
    /// The sessions that no client has, in the order of their turns.
    free: Mutex<VecDeque<TcpStream>>,
    returned: Condvar,
    clients: AtomicUsize,
    transactions: AtomicUsize,
    /// Clients keep their sessions, as in session mode.
    keeps_sessions: AtomicBool,
    is_stopped: AtomicBool,
}

impl Pooler {
    /// Starts a pooler with a number of sessions in a database.
    pub(super) fn start(database: &Database, sessions: usize) -> Self {
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, database.server.port()));
        let mut greeting = Vec::new();
        let free = (0..sessions).map(|_| {
            let (session, answer) = connect(server, &database.name).expect("a session of the server");
            greeting = answer;
            session
        });
        let free = Mutex::new(free.collect());
        let pool = Arc::new(Pool {
            server,
            database: database.name.clone(),
            greeting,
            free,
            returned: Condvar::new(),
            clients: AtomicUsize::new(0),
            transactions: AtomicUsize::new(0),
            keeps_sessions: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let accepting = pool.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let pool = accepting.clone();
                // A client that goes away ends with an error.
                thread::spawn(move || client.and_then(|client| pool.serve(client)));
            }
        });
        Self { pool, address, database: database.name.clone() }
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://timer@{}/{}", self.address, self.database)
    }

    /// Returns the number of clients.
    pub(super) fn clients(&self) -> usize {
        self.pool.clients.load(Ordering::Relaxed)
    }

    /// Returns the number of transactions that have ended.
    pub(super) fn transactions(&self) -> usize {
        self.pool.transactions.load(Ordering::Relaxed)
    }

    /// Begins or ends session mode. A client learns of the end with its next transaction.
    pub(super) fn keep_sessions(&self, keeps: bool) {
        self.pool.keeps_sessions.store(keeps, Ordering::Relaxed);
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.pool.is_stopped.store(true, Ordering::Relaxed);
        let _woken = TcpStream::connect(self.address);
    }
}

impl Pool {
    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        loop {
            let mut length = [0; 4];
            client.read_exact(&mut length)?;
            let startup = read(&mut client, i32::from_be_bytes(length) - 4)?;
            match i32::from_be_bytes([startup[0], startup[1], startup[2], startup[3]]) {
                CANCEL => return Ok(()),
                code if ENCRYPT.contains(&code) => client.write_all(b"N")?,
                _ => break,
            }
        }
        client.write_all(&self.greeting)?;
        self.clients.fetch_add(1, Ordering::Relaxed);
        let mut session = None;
        let ended = self.relay(&mut client, &mut session);
        if let Some(session) = session {
            // The client may have left a transaction open.
            drop(session);
            self.give(connect(self.server, &self.database)?.0);
        }
        self.clients.fetch_sub(1, Ordering::Relaxed);
        ended
    }

    /// Relays the requests of a client and their answers. `session` is the one that the client has.
    fn relay(&self, client: &mut TcpStream, session: &mut Option<TcpStream>) -> io::Result<()> {
        loop {
            // The kinds are a simple query, the end of an extended one, and the end of the client.
            let (request, kind) = read_until(client, b"QSX")?;
            if kind == b'X' {
                return Ok(());
            }
            let server = session.get_or_insert_with(|| self.take());
            // A statement has a name unless the kind and the length are followed by a zero.
            if request[0] == b'P' && request[5] != 0 {
                for other in self.free.lock().unwrap().iter_mut() {
                    exchange(other, &request)?;
                }
            }
            let answer = exchange(server, &request)?;
            if answer.last() == Some(&b'I') {
                self.transactions.fetch_add(1, Ordering::Relaxed);
                if !self.keeps_sessions.load(Ordering::Relaxed) {
                    session.take().into_iter().for_each(|session| self.give(session));
                }
            }
            client.write_all(&answer)?;
        }
    }

    fn take(&self) -> TcpStream {
        let free = self.free.lock().unwrap();
        self.returned.wait_while(free, |free| free.is_empty()).unwrap().pop_front().unwrap()
    }

    fn give(&self, session: TcpStream) {
        self.free.lock().unwrap().push_back(session);
        self.returned.notify_one();
    }
}

/// Opens a session. Returns the greeting of the server, too.
fn connect(server: SocketAddr, database: &str) -> io::Result<(TcpStream, Vec<u8>)> {
    let mut session = TcpStream::connect(server)?;
    let settings = format!("user\0timer\0database\0{database}\0\0");
    let length = i32::try_from(settings.len() + 8).unwrap();
    session.write_all(&[&length.to_be_bytes(), &VERSION.to_be_bytes(), settings.as_bytes()].concat())?;
    let (greeting, _) = read_until(&mut session, &[READY])?;
    Ok((session, greeting))
}

/// Sends messages to the server, and returns its answer.
fn exchange(session: &mut TcpStream, request: &[u8]) -> io::Result<Vec<u8>> {
    session.write_all(request)?;
    Ok(read_until(session, &[READY])?.0)
}

/// Reads and returns messages up to one of the given kinds.
fn read_until(stream: &mut TcpStream, kinds: &[u8]) -> io::Result<(Vec<u8>, u8)> {
    let mut messages = Vec::new();
    loop {
        let head = read(stream, 5)?;
        let body = read(stream, i32::from_be_bytes([head[1], head[2], head[3], head[4]]) - 4)?;
        messages.extend(&head);
        messages.extend(body);
        if kinds.contains(&head[0]) {
            return Ok((messages, head[0]));
        }
    }
}

fn read(stream: &mut TcpStream, length: i32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
