//! The web log, a list of requests with their hosts and times.
//!
//! Every line of a log must be valid. An error names the first bad line with the given and
//! the allowed content as soon as that line has been read, and at most 1 MB of a line is kept in
//! memory. A [`Log`] has at least one request and is sorted by time. Callers open the files.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::ops::RangeInclusive;

/// The first line of every log.
pub const HEADER: &str = "time,host,status,bytes";

/// The greatest length of a line in bytes, including its end (1 MB).
pub const LONGEST_LINE: usize = 1_000_000;

const TIME: RangeInclusive<u64> = 0..=4_294_967_295;
const STATUS: RangeInclusive<u64> = 100..=599;
const BYTES: RangeInclusive<u64> = 0..=1_000_000_000_000;

/// A request of a host in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Seconds since the log's first request.
    pub second: u64,
    /// Index into [`Log::hosts`].
    pub host: usize,
}

/// A log that has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The requests in the order of time. There is at least one, and the first one is at second 0.
    pub requests: Vec<Request>,
    /// The hosts in the order of their first request.
    pub hosts: Vec<String>,
    /// The sum of the sizes of all replies.
    pub bytes: u64,
}

impl Log {
    /// Reads a log, the line [`HEADER`] followed by one line for each request. Lines end in LF or
    /// CR LF.
    ///
    /// ```
    /// use examples::sessions::log::Log;
    ///
    /// let log = Log::parse(b"time,host,status,bytes\n50,a.org,200,1000\n57,b.org,404,0\n").unwrap();
    /// assert_eq!(log.hosts, ["a.org", "b.org"]);
    /// assert_eq!(log.span(), 7);
    ///
    /// let error = Log::parse(b"time,host,status,bytes\n50,a.org,OK,1000\n").unwrap_err();
    /// assert_eq!(error.to_string(), "line 2: status 'OK' given; allowed: a whole number in 100..=599");
    /// ```
    ///
    /// # Errors
    ///
    /// Fails for the first bad line, for a time that goes backwards, and for a log without
    /// requests.
    pub fn parse(text: &[u8]) -> Result<Self, LogError> {
        Self::read(text)
    }

    /// Reads a log piece by piece. See [`parse`](Self::parse).
    ///
    /// ```
    /// use examples::sessions::log::Log;
    /// use std::io::{BufReader, repeat};
    ///
    /// let error = Log::read(BufReader::new(repeat(0))).unwrap_err();
    /// assert_eq!(error.to_string(), "line 1: longer than 1 MB; allowed: 1000000 bytes");
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like [`parse`](Self::parse), for a line of more than [`LONGEST_LINE`] bytes, and for
    /// an error of `reader`.
    pub fn read(reader: impl BufRead) -> Result<Self, LogError> {
        let mut lines = Lines { reader, buffer: Vec::new(), number: 0 };
        match lines.next()? {
            None => return Err(lines.error(format!("the file is empty; the first line must be '{HEADER}'"))),
            Some(HEADER) => {}
            Some(line) => {
                let reason = format!("'{}' given; the first line must be '{HEADER}'", shown(line));
                return Err(lines.error(reason));
            }
        }
        let mut log = Self { requests: Vec::new(), hosts: Vec::new(), bytes: 0 };
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut first = 0;
        let mut before = 0;
        while let Some(line) = lines.next()? {
            let row = match Row::parse(line) {
                Ok(row) => row,
                Err(reason) => return Err(lines.error(reason)),
            };
            if log.requests.is_empty() {
                first = row.time;
            } else if row.time < before {
                let reason =
                    format!("time {} goes backwards; allowed: {before}, as in the line before, or later", row.time);
                return Err(lines.error(reason));
            }
            before = row.time;
            let host = match known.get(row.host) {
                Some(host) => *host,
                None => {
                    log.hosts.push(row.host.to_owned());
                    known.insert(row.host.to_owned(), log.hosts.len() - 1);
                    log.hosts.len() - 1
                }
            };
            log.bytes = log.bytes.saturating_add(row.bytes);
            log.requests.push(Request { second: row.time - first, host });
        }
        if log.requests.is_empty() {
            return Err(lines.error("the file ends after its header; at least one request is needed".to_owned()));
        }
        Ok(log)
    }

    /// Returns the seconds from the first request to the last.
    #[must_use]
    pub fn span(&self) -> u64 {
        self.requests.last().map_or(0, |request| request.second)
    }
}

/// An error in a log, with the number of the line (counted from 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogError {
    line: u64,
    reason: String,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for LogError {}

struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The number of the line that was read last, or of the missing line at the end.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Returns the next line without its end, or `None` at the end of the log.
    fn next(&mut self) -> Result<Option<&str>, LogError> {
        self.buffer.clear();
        self.number += 1;
        // One more byte than is allowed distinguishes a line that is too long from one that fits.
        let most = LONGEST_LINE as u64 + 1;
        match self.reader.by_ref().take(most).read_until(b'\n', &mut self.buffer) {
            Ok(0) => return Ok(None),
            Ok(length) if length > LONGEST_LINE => {
                return Err(self.error(format!("longer than 1 MB; allowed: {LONGEST_LINE} bytes")));
            }
            Ok(_) => {}
            Err(error) => return Err(self.unreadable(&error)),
        }
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match std::str::from_utf8(line) {
            Ok(line) => Ok(Some(line)),
            Err(error) => {
                Err(self.error(format!("byte {} is not UTF-8; allowed: UTF-8 text", error.valid_up_to() + 1)))
            }
        }
    }

    fn unreadable(&self, error: &io::Error) -> LogError {
        self.error(format!("{error}; allowed: a readable CSV file with the header {HEADER}"))
    }

    fn error(&self, reason: String) -> LogError {
        LogError { line: self.number, reason }
    }
}

struct Row<'a> {
    time: u64,
    host: &'a str,
    bytes: u64,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Result<Self, String> {
        if line.is_empty() {
            return Err(format!("empty line; allowed: {HEADER}"));
        }
        let columns: Vec<&str> = line.split(',').collect();
        let [time, host, status, bytes] = columns[..] else {
            return Err(format!("{} columns given; allowed: the four of {HEADER}", columns.len()));
        };
        let time = number("time", time, TIME)?;
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"') {
            return Err(format!("host '{}' given; allowed: a name without blanks and quotes", shown(host)));
        }
        number("status", status, STATUS)?;
        let bytes = number("bytes", bytes, BYTES)?;
        Ok(Self { time, host, bytes })
    }
}

fn number(column: &str, given: &str, allowed: RangeInclusive<u64>) -> Result<u64, String> {
    let digits = !given.is_empty() && given.bytes().all(|b| b.is_ascii_digit());
    match given.parse() {
        Ok(value) if digits && allowed.contains(&value) => Ok(value),
        _ => {
            let low = allowed.start();
            let high = allowed.end();
            Err(format!("{column} '{}' given; allowed: a whole number in {low}..={high}", shown(given)))
        }
    }
}

/// Prepares text of a file for a message. Control characters are escaped, and long text is cut.
fn shown(given: &str) -> String {
    let mut text: String = given.chars().take(60).flat_map(char::escape_debug).collect();
    if given.chars().nth(60).is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
