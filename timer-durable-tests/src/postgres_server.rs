//! A PostgreSQL server for tests, started from the installed binaries.
//!
//! The server runs in a temporary folder on a free port of the loopback interface. It is stopped by
//! its process id when the value is dropped. PostgreSQL refuses to run as root, so a test that runs
//! as root starts it as the user `postgres` or `nobody`.
//!
//! The environment variable `TIMER_POSTGRES_BIN` names the folder of the binaries. Without it the
//! newest version below `/usr/lib/postgresql` is used. If there is none, the tests that need a
//! server are skipped with a message. When `CI` is set they fail instead. If the folder has no
//! `psql` or `pg_isready`, the one of the newest installed version is used.
//!
//! `TIMER_POSTGRES_NEWER_BIN` names the folder of a version to which tests move timeouts.

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The environment variable with the folder of the server's binaries.
const BINARIES: &str = "TIMER_POSTGRES_BIN";

/// The environment variable with the folder of the binaries of a newer version.
const NEWER_BINARIES: &str = "TIMER_POSTGRES_NEWER_BIN";

/// The way in which a server is stopped.
#[derive(Clone, Copy, Debug)]
pub enum Shutdown {
    /// Ends all connections and writes a checkpoint (SIGINT).
    Fast,
    /// Ends at once and recovers from the log at the next start (SIGQUIT).
    Immediate,
}

/// A running server.
pub struct Server {
    binaries: PathBuf,
    folder: PathBuf,
    port: u16,
    user: Option<(u32, u32)>,
    process: Option<Child>,
}

/// Returns the server that the tests of this process share while at least one of them runs, or
/// `None` if PostgreSQL is not installed.
pub fn shared() -> Option<Arc<Server>> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    let server = Arc::new(Server::start_for_tests()?);
    *shared = Arc::downgrade(&server);
    Some(server)
}

impl Server {
    /// Starts a server that does not wait for the disk, with its files in memory if there is room.
    /// A build beside the tests may keep the disk busy for longer than the short leases of tests. A
    /// killed server loses nothing, since its machine goes on.
    pub fn start_for_tests() -> Option<Self> {
        Some(Self::start_in_memory(required_binaries()?))
    }

    /// Starts a server of the version in `TIMER_POSTGRES_NEWER_BIN`, as
    /// [`start_for_tests`](Self::start_for_tests) does. Returns `None` without that variable.
    pub fn start_newer() -> Option<Self> {
        Some(Self::start_in_memory(folder_in(NEWER_BINARIES)?))
    }

    /// Starts a server with an empty database.
    ///
    /// Prints a message and returns `None` if PostgreSQL is not installed. Panics instead when `CI`
    /// is set.
    pub fn start() -> Option<Self> {
        Some(Self::start_in(&std::env::temp_dir(), required_binaries()?, ""))
    }

    fn start_in_memory(binaries: PathBuf) -> Self {
        Self::start_in(&memory_folder().unwrap_or_else(std::env::temp_dir), binaries, "fsync = off")
    }

    fn start_in(parent: &Path, binaries: PathBuf, settings: &str) -> Self {
        let folder = temporary_folder(parent).expect("a temporary folder");
        let user = if effective_user() == 0 { Some(unprivileged_user()) } else { None };
        if let Some((uid, gid)) = user {
            chown(&folder, Some(uid), Some(gid)).expect("the folder changes its owner");
        }
        let port = free_port().expect("a free port");
        let mut server = Self { binaries, folder, port, user, process: None };
        server.initialize();
        server.append_settings(settings);
        server.launch();
        server
    }

    /// Moves the databases of an older server to this one by `pg_upgrade`. Stops both servers and
    /// starts this one again, which loses its own databases.
    pub fn upgrade_from(&mut self, older: &mut Self) {
        older.stop(Shutdown::Fast);
        self.stop(Shutdown::Fast);
        let data = |server: &Self| server.folder.join("data").display().to_string();
        // From version 18 on, initdb turns checksums on, and both have to agree.
        older.execute("pg_checksums", &["--enable", "--no-sync", "-D", &data(older)]);
        let binaries = |server: &Self| server.binaries.display().to_string();
        let from = ["-b", &binaries(older), "-d", &data(older), "-p", &older.port.to_string()];
        let to = ["-B", &binaries(self), "-D", &data(self), "-P", &self.port.to_string()];
        self.execute("pg_upgrade", &[&["-U", "timer", "--no-sync"], &from[..], &to[..]].concat());
        self.launch();
    }

    /// Runs a program of the server and waits for it.
    pub fn execute(&self, program: &str, args: &[&str]) {
        let output = self.command(program).args(args).stdout(Stdio::piped()).output().expect("the program runs");
        let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{program} {args:?}: {text}{errors}");
    }

    /// Returns the URL of a database for a superuser without a password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://timer@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates a database that no other test uses, and returns its name.
    pub fn create_database(&self) -> String {
        let name = format!("test_{:x}", fastrand::u64(..));
        self.sql("postgres", &format!("create database {name}"));
        name
    }

    /// Executes statements in a database, and returns the rows as lines with columns between `|`.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let output = self.psql(database).args(["-c", statements]).output().expect("psql runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Returns a `psql` that prints rows only and ends at the first error.
    pub fn psql(&self, database: &str) -> Command {
        let mut command = self.command("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database)]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Sends a signal to the server's processes that work for clients of `database`.
    pub fn signal(&self, signal: &str, database: &str) {
        let own = format!("from pg_stat_activity where datname = '{database}' and pid <> pg_backend_pid()");
        for pid in self.sql("postgres", &format!("select pid {own}")).lines() {
            send(signal, pid.parse().expect("a process id"));
        }
    }

    /// Writes a file that only the server may read, and returns its path.
    pub fn write_file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text).expect("a file of the server");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("the rights change");
        if let Some((uid, gid)) = self.user {
            chown(&path, Some(uid), Some(gid)).expect("the file changes its owner");
        }
        path
    }

    /// Starts the server again with other settings, which are lines of `postgresql.conf`.
    pub fn configure(&mut self, settings: &str) {
        self.stop(Shutdown::Fast);
        self.append_settings(settings);
        self.launch();
    }

    fn append_settings(&self, settings: &str) {
        let file = fs::OpenOptions::new().append(true).open(self.folder.join("data/postgresql.conf"));
        writeln!(file.expect("the settings"), "{settings}").expect("a setting");
    }

    /// Starts a streaming replica. The server restarts for that, so that its files can be copied.
    pub fn start_replica(&mut self) -> Self {
        self.stop(Shutdown::Fast);
        let parent = self.folder.parent().expect("a folder has a parent");
        let folder = temporary_folder(parent).expect("a temporary folder");
        let port = free_port().expect("a free port");
        let copy = Command::new("cp").arg("-a").arg(self.folder.join("data")).arg(&folder).status();
        assert!(copy.is_ok_and(|status| status.success()), "cp copies the files");
        if let Some((uid, gid)) = self.user {
            chown(&folder, Some(uid), Some(gid)).expect("the folder changes its owner");
        }
        self.launch();
        let mut replica = Self { binaries: self.binaries.clone(), folder, port, user: self.user, process: None };
        replica.write_file("data/standby.signal", "");
        replica.append_settings(&format!("primary_conninfo = 'host=127.0.0.1 port={} user=timer'", self.port));
        replica.launch();
        replica
    }

    /// Returns the port on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops the server and waits for its end.
    pub fn stop(&mut self, how: Shutdown) {
        let Some(mut process) = self.process.take() else { return };
        let signal = match how {
            Shutdown::Fast => "-INT",
            Shutdown::Immediate => "-QUIT",
        };
        send(signal, process.id());
        let _ended = process.wait();
    }

    /// Starts the server again after [`stop`](Self::stop) and waits until it accepts connections.
    pub fn launch(&mut self) {
        let log = fs::File::create(self.folder.join("log")).expect("a log file");
        let process = self
            .command("postgres")
            .arg("-D")
            .arg(self.folder.join("data"))
            .args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1", "-k"])
            .arg(&self.folder)
            .args(["-c", "max_connections=200", "-c", "max_prepared_transactions=10"])
            .stderr(log)
            .spawn()
            .expect("postgres starts");
        self.process = Some(process);
        let begun = Instant::now();
        while !self.accepts_connections() {
            assert!(begun.elapsed() < Duration::from_secs(60), "not ready after a minute: {}", self.log());
            // The server has no event to wait for, so the test asks for its state.
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn initialize(&self) {
        let output = self
            .command("initdb")
            .arg("-D")
            .arg(self.folder.join("data"))
            .args(["-U", "timer", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .output()
            .expect("initdb runs");
        assert!(output.status.success(), "initdb failed: {}", String::from_utf8_lossy(&output.stderr));
        // The last rule is for users with a password.
        let rules = self.folder.join("data/pg_hba.conf");
        let lines = "local all all trust\nhost all timer all trust\nhost replication timer all trust\n\
                     host all all all scram-sha-256\n";
        fs::write(&rules, lines).expect("rules");
    }

    fn accepts_connections(&self) -> bool {
        let port = self.port.to_string();
        let status = self.command("pg_isready").args(["-q", "-h", "127.0.0.1", "-p", &port]).status();
        status.is_ok_and(|status| status.success())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Returns the path of a program, if need be of a client of another version.
    fn program(&self, name: &str) -> PathBuf {
        let own = self.binaries.join(name);
        if own.is_file() {
            return own;
        }
        installed().map_or(PathBuf::from(name), |folder| folder.join(name))
    }

    /// Returns a program of the server, or another one by its path, as the server's user and in its
    /// folder.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.program(program));
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Shutdown::Immediate);
        let _removed = fs::remove_dir_all(&self.folder);
    }
}

/// Sends a signal, such as `-STOP`, to a process.
pub fn send(signal: &str, pid: u32) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill runs");
    assert!(status.success(), "kill {signal} {pid}");
}

/// Returns the folder in `TIMER_POSTGRES_BIN`, or else that of the newest installed version.
pub fn binaries() -> Option<PathBuf> {
    folder_in(BINARIES).or_else(installed)
}

/// Returns the same as [`binaries`]. Prints a message if there are none, or panics when `CI` is
/// set.
fn required_binaries() -> Option<PathBuf> {
    let found = binaries();
    if found.is_none() {
        let message = "PostgreSQL's server is not installed (apt-get install postgresql); the test is skipped";
        assert!(std::env::var_os("CI").is_none(), "{message}, which CI does not allow");
        eprintln!("{message}");
    }
    found
}

/// Returns the folder of binaries in an environment variable.
fn folder_in(variable: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(variable)?);
    assert!(folder.join("postgres").is_file(), "{variable}={} has no postgres", folder.display());
    Some(folder)
}

/// Returns the folder of the newest version below `/usr/lib/postgresql`.
pub fn installed() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            let path = version.ok()?.path();
            let number = path.file_name()?.to_str()?.parse().ok()?;
            let binaries = path.join("bin");
            binaries.join("postgres").is_file().then_some((number, binaries))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

/// Returns a folder whose files are in memory, if it has room for the databases of all tests.
fn memory_folder() -> Option<PathBuf> {
    let folder = PathBuf::from("/dev/shm");
    let output = Command::new("df").args(["-P", "-k"]).arg(&folder).output().ok()?;
    let table = String::from_utf8_lossy(&output.stdout);
    let free: u64 = table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    (free >= 4 << 20).then_some(folder)
}

fn temporary_folder(parent: &Path) -> io::Result<PathBuf> {
    let name = format!("timer-postgres-{}-{:x}", std::process::id(), fastrand::u32(..));
    let folder = parent.join(name);
    fs::create_dir(&folder)?;
    Ok(folder)
}

/// Asks the system for a port that nobody uses. Another program could take it before the server
/// does.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn effective_user() -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").map_or(0, |process| process.uid())
}

/// Returns the ids of `postgres`, which the package of the server creates, or of `nobody`.
fn unprivileged_user() -> (u32, u32) {
    let users = fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map(|field| field.parse().ok());
        Some((fields.next()??, fields.next()??))
    };
    ids("postgres").or_else(|| ids("nobody")).unwrap_or((65_534, 65_534))
}
