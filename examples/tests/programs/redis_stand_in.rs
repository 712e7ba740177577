//! A stand-in for Redis with keys, leases and the two scripts of a lock, recognized by their calls.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

type Keys = Arc<Mutex<HashMap<String, (String, Instant)>>>;

/// Starts a stand-in that serves for as long as the tests run. Returns its URL.
pub(super) fn start() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let keys = Keys::default();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let keys = keys.clone();
            // A client that is killed breaks its connection.
            thread::spawn(move || _ = serve(stream.unwrap(), &keys));
        }
    });
    url
}

fn serve(mut stream: TcpStream, keys: &Keys) -> io::Result<()> {
    let mut requests = BufReader::new(stream.try_clone()?);
    loop {
        let words = request(&mut requests)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        stream.write_all(answer(&words, &mut keys.lock().unwrap()).as_bytes())?;
    }
}

/// Reads an array of strings, each preceded by its length.
fn request(from: &mut impl BufRead) -> io::Result<Vec<String>> {
    let count = length(from, '*')?;
    let word = |_| {
        let mut bytes = vec![0; length(from, '$')? + 2];
        from.read_exact(&mut bytes)?;
        bytes.truncate(bytes.len() - 2);
        String::from_utf8(bytes).map_err(io::Error::other)
    };
    (0..count).map(word).collect()
}

fn length(from: &mut impl BufRead, mark: char) -> io::Result<usize> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    line.trim_end().strip_prefix(mark).and_then(|n| n.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn answer(words: &[&str], keys: &mut HashMap<String, (String, Instant)>) -> String {
    let now = Instant::now();
    keys.retain(|_, (_, until)| *until > now);
    let until = |millis: &str| now + Duration::from_millis(millis.parse().unwrap());
    match *words {
        ["CLIENT" | "PING", ..] => "+OK\r\n".to_owned(),
        ["SET", key, ..] if keys.contains_key(key) => "$-1\r\n".to_owned(),
        ["SET", key, token, "NX", "PX", millis] => {
            keys.insert(key.to_owned(), (token.to_owned(), until(millis)));
            "+OK\r\n".to_owned()
        }
        ["PTTL", key] => match keys.get(key) {
            Some((_, until)) => format!(":{}\r\n", (*until - now).as_millis()),
            None => ":-2\r\n".to_owned(),
        },
        ["EVAL", _, "1", key, token, _] if keys.get(key).is_none_or(|(holder, _)| holder != token) => {
            ":0\r\n".to_owned()
        }
        ["EVAL", script, "1", key, token, millis] if script.contains("pexpire") => {
            keys.insert(key.to_owned(), (token.to_owned(), until(millis)));
            ":1\r\n".to_owned()
        }
        ["EVAL", script, "1", key, ..] if script.contains("del") => {
            keys.remove(key);
            ":1\r\n".to_owned()
        }
        _ => format!("-ERR the stand-in does not know {words:?}\r\n"),
    }
}
