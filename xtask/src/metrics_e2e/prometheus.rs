//! A Prometheus of our own, until it is dropped: its settings, its data and its log are in one folder.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use super::answer::{self, Sample};
use crate::cargo::Failure;

/// How often it is asked for something that is to come, and how long it is left in peace in between: a minute in all.
const TRIES: u32 = 240;
const PAUSE: Duration = Duration::from_millis(250);
/// For one answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Prometheus {
    child: Child,
    addr: SocketAddr,
    log: PathBuf,
}

impl Prometheus {
    /// Scrapes `target` once a second, with the alert rules of `rules`. `folder` is made anew. Returns when it is ready.
    pub(super) fn start(folder: &Path, target: &str, rules: Option<&Path>) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::new(format!("cannot start prometheus: {error}"));
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(failed)?;
        }
        fs::create_dir_all(folder).map_err(failed)?;
        let settings = folder.join("prometheus.yml");
        fs::write(&settings, self::settings(target, rules)).map_err(failed)?;
        let addr = free_addr().map_err(failed)?;
        let log = folder.join("prometheus.log");
        let output = File::create(&log).map_err(failed)?;
        eprintln!("$ prometheus --web.listen-address={addr}");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", settings.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={addr}"))
            .arg("--log.level=warn")
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            .spawn()
            .map_err(failed)?;
        let mut prometheus = Self { child, addr, log };
        prometheus.wait("it to be ready", |prometheus| {
            let ready = prometheus.get("/-/ready").is_ok_and(|reply| reply.starts_with("HTTP/1.0 200"));
            Ok(ready.then_some(()))
        })?;
        Ok(prometheus)
    }

    /// What the instant query `promql` has now.
    pub(super) fn query(&mut self, promql: &str) -> Result<Vec<Sample>, Failure> {
        let failed = |what: String| Failure::new(format!("prometheus, asked for `{promql}`: {what}"));
        let reply = self.get(&format!("/api/v1/query?query={}", encode(promql)));
        let reply = reply.map_err(|error| failed(error.to_string()))?;
        answer::parse(&reply).ok_or_else(|| failed(reply))
    }

    /// The value of a query with one series.
    pub(super) fn value(&mut self, promql: &str) -> Result<f64, Failure> {
        match self.query(promql)?.as_slice() {
            [one] => Ok(one.value),
            other => Err(Failure::new(format!("prometheus has {} series for `{promql}`, not one", other.len()))),
        }
    }

    /// Waits until a query has one series, and its value is as `wanted`.
    pub(super) fn until(&mut self, promql: &str, wanted: impl Fn(f64) -> bool) -> Result<(), Failure> {
        self.wait(promql, |prometheus| {
            let samples = prometheus.query(promql)?;
            Ok((samples.len() == 1 && wanted(samples[0].value)).then_some(()))
        })
    }

    /// Waits until the rules were evaluated; fails if one of them cannot be.
    pub(super) fn rules_are_healthy(&mut self) -> Result<(), Failure> {
        self.wait("its rules", |prometheus| {
            let reply = prometheus.get("/api/v1/rules").unwrap_or_default();
            if reply.contains("\"health\":\"err\"") {
                return Err(Failure::new(format!("a rule cannot be evaluated: {reply}")));
            }
            Ok((reply.contains("\"status\":\"success\"") && !reply.contains("\"health\":\"unknown\"")).then_some(()))
        })
    }

    fn wait(
        &mut self,
        what: &str,
        mut ask: impl FnMut(&mut Self) -> Result<Option<()>, Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..TRIES {
            if let Some(found) = ask(self)? {
                return Ok(found);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Failure::new(format!("prometheus ended ({status}):\n{}", self.told())));
            }
            thread::sleep(PAUSE);
        }
        Err(Failure::new(format!("prometheus: waited in vain for {what}:\n{}", self.told())))
    }

    /// The reply with its head. HTTP/1.0, so that it is not cut into chunks.
    fn get(&self, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.addr, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.addr)?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok(reply)
    }

    fn told(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended, and is not needed any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn settings(target: &str, rules: Option<&Path>) -> String {
    let rules = rules.map(|path| format!("rule_files: ['{}']\n", path.display().to_string().replace('\'', "''")));
    format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n{}scrape_configs:\n  - job_name: sessions\n    \
         static_configs: [{{ targets: ['{target}'] }}]\n",
        rules.unwrap_or_default()
    )
}

/// A port that nobody listens on just now.
fn free_addr() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// As it may stand in a URL's query.
fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::{encode, settings};
    use std::path::Path;

    #[test]
    fn a_query_is_encoded_byte_by_byte() {
        assert_eq!(encode("a_b{c=\"µ\"} > 0.5"), "a_b%7Bc%3D%22%C2%B5%22%7D%20%3E%200.5");
    }

    #[test]
    fn settings_name_the_target_and_the_rules() {
        let text = settings("127.0.0.1:1", Some(Path::new("it's/a.yml")));
        assert!(text.contains("rule_files: ['it''s/a.yml']\n") && text.contains("targets: ['127.0.0.1:1']"));
        assert!(!settings("a", None).contains("rule_files"));
    }
}
