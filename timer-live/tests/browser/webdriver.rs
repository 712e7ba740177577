//! A WebDriver session with a headless Chromium. `chromedriver` and Chromium end with the session.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for a condition on the page.
const LIMIT: Duration = Duration::from_secs(30);
/// The pause between two looks at the page.
const PAUSE: Duration = Duration::from_millis(50);

/// A page in a separate browser.
pub(crate) struct Page {
    driver: Driver,
    session: String,
    profile: PathBuf,
}

/// A `chromedriver` process. Dropping this kills it.
struct Driver {
    child: Child,
    port: u16,
}

impl Page {
    /// Starts a browser. Returns `None` if `chromedriver` is not installed.
    pub(crate) fn open(url: &str) -> Option<Self> {
        let driver = Driver::start()?;
        // The port of the driver tells the profiles of two tests apart.
        let name = format!("chromium-{}-{}", std::process::id(), driver.port);
        let profile = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut arguments = vec![format!("--user-data-dir={}", profile.display())];
        let switches = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking \
                        disable-component-update disable-sync disable-dev-shm-usage";
        arguments.extend(switches.split_whitespace().map(|switch| format!("--{switch}")));
        let options = json!({ "goog:chromeOptions": { "args": arguments }, "goog:loggingPrefs": { "browser": "ALL" } });
        let session = driver.call("POST", "/session", &json!({ "capabilities": { "alwaysMatch": options } }));
        let session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        let page = Self { driver, session, profile };
        page.go(url);
        Some(page)
    }

    pub(crate) fn go(&self, url: &str) {
        self.call("/url", &json!({ "url": url }));
    }

    fn call(&self, path: &str, body: &Value) -> Value {
        self.driver.call("POST", &format!("{}{path}", self.session), body)
    }

    /// Calls a method of the DevTools protocol.
    pub(crate) fn devtools(&self, method: &str, parameters: &Value) -> Value {
        self.call("/goog/cdp/execute", &json!({ "cmd": method, "params": parameters }))
    }

    /// Returns the value of a JavaScript expression.
    pub(crate) fn value(&self, expression: &str) -> Value {
        self.call("/execute/sync", &json!({ "script": format!("return {expression};"), "args": [] }))
    }

    /// Waits until a JavaScript expression is true.
    pub(crate) fn until(&self, expression: &str) {
        let begin = Instant::now();
        while self.value(expression) != true {
            assert!(begin.elapsed() < LIMIT, "{expression} is false: {}", self.value("document.body.innerText"));
            std::thread::park_timeout(PAUSE);
        }
    }

    /// Returns the messages in the console since the last call.
    pub(crate) fn console(&self) -> Vec<Value> {
        self.call("/se/log", &json!({ "type": "browser" })).as_array().unwrap().clone()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // A browser that has crashed cannot be closed. The driver is killed in any case.
        let _ = self.driver.try_call("DELETE", &self.session, &json!({}));
        let _ = fs::remove_dir_all(&self.profile);
    }
}

impl Driver {
    fn start() -> Option<Self> {
        let mut command = Command::new("chromedriver");
        let mut child = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ports = lines.map_while(Result::ok).filter_map(|line| {
            let (_, rest) = line.split_once("started successfully on port ")?;
            rest.trim_end_matches('.').parse().ok()
        });
        let port = { ports }.next().expect("chromedriver prints its port");
        Some(Self { child, port })
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        self.try_call(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    fn try_call(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = body.to_string();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let reply = self.exchange(&request).map_err(|error| error.to_string())?;
        let mut reply: Value = serde_json::from_slice(&reply).map_err(|error| error.to_string())?;
        match reply["value"].take() {
            Value::Object(value) if value.contains_key("error") => Err(value["message"].to_string()),
            value => Ok(value),
        }
    }

    /// Sends a request and returns the body of the reply, whose length its head states.
    fn exchange(&self, request: &str) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(request.as_bytes())?;
        let mut reply = BufReader::new(stream);
        let mut line = String::new();
        let mut length = 0;
        while reply.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
            if let Some((name, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().map_err(|_| std::io::Error::other(format!("{name}: {value}")))?;
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reply.read_exact(&mut body)?;
        Ok(body)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
