//! A private `redis-server` on a free port with a temporary folder. It saves nothing.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use examples::cli::Refused;
use redis::Client;

const MISSING: &str = "redis-server is not installed; allowed: to install it (Debian and Ubuntu: apt-get install \
                       redis-server), or --redis with the URL of one that runs";
const READY_WITHIN: Duration = Duration::from_secs(20);

/// A server that ends when this is dropped.
pub(crate) struct Server {
    process: Child,
    folder: PathBuf,
    pub(crate) url: String,
}

impl Server {
    /// Starts a server and waits until it answers.
    pub(crate) fn start() -> Result<Self, Box<dyn Error>> {
        // The port was free a moment ago. If another process takes it first, the server ends at
        // once.
        for _ in 0..3 {
            let mut server = Self::on(free_port()?)?;
            if server.is_ready()? {
                return Ok(server);
            }
        }
        Err("redis-server does not start".into())
    }

    fn on(port: u16) -> Result<Self, Box<dyn Error>> {
        let folder = std::env::temp_dir().join(format!("lock_watchdog-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.arg("--port").arg(port.to_string()).arg("--dir").arg(&folder);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match quiet.spawn() {
            Ok(process) => Ok(Self { process, folder, url: format!("redis://127.0.0.1:{port}") }),
            Err(error) => {
                std::fs::remove_dir(&folder)?;
                let missing = error.kind() == io::ErrorKind::NotFound;
                Err(if missing { Refused(MISSING.to_owned()).into() } else { error.into() })
            }
        }
    }

    /// Returns `false` if the server has ended.
    fn is_ready(&mut self) -> Result<bool, Box<dyn Error>> {
        let client = Client::open(self.url.as_str())?;
        let began = Instant::now();
        while began.elapsed() < READY_WITHIN {
            if self.process.try_wait()?.is_some() {
                return Ok(false);
            }
            let ping = client.get_connection().and_then(|mut connection| redis::cmd("PING").exec(&mut connection));
            if ping.is_ok() {
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(format!("redis-server does not answer within {READY_WITHIN:?}").into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended, and the folder may be gone.
        _ = self.process.kill();
        _ = self.process.wait();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
