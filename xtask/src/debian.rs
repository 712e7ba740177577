//! PostgreSQL from a later Debian, unpacked below the target folder.
//!
//! Its programs need a newer C library than that of this machine. It is unpacked beside them, and
//! each program is started by the dynamic linker of that library. Nothing is installed, and no
//! script of a package runs.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use crate::run::{Failure, Result, need, run, target_dir};

/// The major versions. A suite has only the newest package of each, so the packages are not pinned.
const VERSIONS: [&str; 2] = ["18", "19"];

/// The suites. The second one has versions before their release.
const SUITES: [&str; 2] = ["sid", "experimental"];

/// Lets both versions share the newer client library.
const PREFERENCES: &str = "Package: libpq5\nPin: release a=experimental\nPin-Priority: 500\n";

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Returns the folder with all programs of each version. The first call unpacks them.
///
/// The environment variable `TIMER_DEBIAN_MIRROR` is the URL of another mirror, or of a day of
/// snapshot.debian.org.
pub(crate) fn postgres(sh: &Shell) -> Result<[PathBuf; 2]> {
    let root = target_dir().join("debian");
    let folders = VERSIONS.map(|version| root.join("usr/lib/postgresql").join(version));
    let complete = root.join("complete");
    if !complete.is_file() {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let packages =
            VERSIONS.map(|version| [format!("postgresql-{version}"), format!("postgresql-client-{version}")]);
        unpack(sh, &root, packages.as_flattened())?;
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        folders.iter().try_for_each(|folder| start_by_linker(sh, folder, &libraries))?;
        fs::write(complete, "")?;
    }
    Ok(folders.map(|folder| folder.join("bin")))
}

/// Unpacks packages and all of their dependencies.
fn unpack(sh: &Shell, root: &Path, packages: &[String]) -> Result {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Failure::skipped("CPU of the architecture x86_64"));
    }
    need("apt-get --version", "apt-get")?;
    if !Path::new(KEYRING).is_file() {
        return Err(Failure::skipped("keys of Debian (apt-get install debian-archive-keyring)"));
    }
    let apt = root.join("apt");
    for folder in ["etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial"] {
        fs::create_dir_all(apt.join(folder))?;
    }
    let mirror = std::env::var("TIMER_DEBIAN_MIRROR").unwrap_or_else(|_| "http://deb.debian.org/debian".to_owned());
    let sources = SUITES.map(|suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n")).concat();
    fs::write(apt.join("etc/apt/sources.list"), sources)?;
    fs::write(apt.join("etc/apt/preferences.d/postgresql"), PREFERENCES)?;
    // In this folder, no package counts as installed.
    fs::write(apt.join("status"), "")?;
    let options = [
        format!("Dir={}", apt.display()),
        format!("Dir::State::status={}", apt.join("status").display()),
        "Debug::NoLocking=true".to_owned(),
        "APT::Sandbox::User=".to_owned(),
        "APT::Install-Recommends=false".to_owned(),
        // The lists of a snapshot are old.
        "Acquire::Check-Valid-Until=false".to_owned(),
    ];
    let options: Vec<&str> = options.iter().flat_map(|option| ["-o", option]).collect();
    let options = options.as_slice();
    run(cmd!(sh, "apt-get {options...} -qq update"))?;
    run(cmd!(sh, "apt-get {options...} -qq --yes --download-only install {packages...}"))?;
    for package in sh.read_dir(apt.join("var/cache/apt/archives"))? {
        if package.extension().is_some_and(|it| it == "deb") {
            cmd!(sh, "dpkg-deb --extract {package} {root}").quiet().run()?;
        }
    }
    Ok(fs::remove_dir_all(apt)?)
}

/// Replaces the programs of a version by scripts, which start them by the linker of their library.
fn start_by_linker(sh: &Shell, folder: &Path, libraries: &Path) -> Result {
    let scripts = folder.join("bin");
    let programs = folder.join("programs");
    fs::rename(&scripts, &programs)?;
    for program in sh.read_dir(&programs)? {
        let script = scripts.join(program.file_name().unwrap_or_default());
        // A program finds the other programs and its data by its own path.
        let text = format!(
            "#!/bin/sh\nexec '{0}/ld-linux-x86-64.so.2' --library-path '{0}' --argv0 '{1}' '{2}' \"$@\"\n",
            libraries.display(),
            script.display(),
            program.display(),
        );
        sh.write_file(&script, text)?;
        cmd!(sh, "chmod +x {script}").quiet().run()?;
    }
    Ok(())
}
