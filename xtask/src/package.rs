//! The packages that a registry would get, each built alone against the packages of the crates that
//! it needs. Only this check finds a file that is not packed.
//!
//! `cargo package` would build them too, but against the copies of the other packages that it
//! unpacked first. It takes the copy of an earlier run for that of the current one if the version
//! is the same.

use std::fs;

use xshell::{Shell, cmd};

use crate::cargo::cargo;
use crate::crates::PUBLISHED;
use crate::run::{Failure, Result, root, run, target_dir};

/// Packs the published crates, unpacks them into a new workspace, and builds one after the other.
pub(crate) fn command(sh: &Shell) -> Result {
    let packages = target_dir().join("package");
    sh.remove_path(&packages)?;
    cargo(sh, &["package {libraries} -p timer-cli --allow-dirty --no-verify"])?;
    let workspace = packages.join("workspace");
    fs::create_dir_all(&workspace)?;
    for file in sh.read_dir(&packages)?.iter().filter(|path| path.extension().is_some_and(|is| is == "crate")) {
        // With new times, because cargo compares them with those of an earlier build.
        run(cmd!(sh, "tar -xmzf {file} -C {workspace}"))?;
    }
    let members: Vec<String> = sh
        .read_dir(&workspace)?
        .iter()
        .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
        .filter(|name| PUBLISHED.iter().any(|published| name.starts_with(published)))
        .collect();
    if members.len() != PUBLISHED.len() {
        return Err(Failure::new(format!("the packages are {members:?}, but {PUBLISHED:?} were expected")));
    }
    sh.write_file(workspace.join("Cargo.toml"), manifest(&members))?;
    sh.copy_file(root().join("Cargo.lock"), &workspace)?;
    let manifest = workspace.join("Cargo.toml");
    let target = target_dir();
    for package in PUBLISHED {
        // Without the features that other crates of a build would enable in its dependencies.
        run(cmd!(sh, "cargo build -p {package} --all-features --manifest-path {manifest} --target-dir {target}"))?;
    }
    Ok(())
}

/// Returns the manifest of a workspace whose members, folders such as `timer-core-0.1.0`, take the
/// place of the packages of a registry.
fn manifest(members: &[String]) -> String {
    let mut text = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n[patch.crates-io]\n");
    for member in members {
        if let Some((name, _)) = member.rsplit_once('-') {
            text += &format!("{name} = {{ path = {member:?} }}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::manifest;

    #[test]
    fn members_take_the_place_of_the_registrys_packages() {
        let text = manifest(&["timer-core-0.1.0".to_owned()]);
        assert!(text.contains("members = [\"timer-core-0.1.0\"]\n"), "{text}");
        assert!(text.ends_with("timer-core = { path = \"timer-core-0.1.0\" }\n"), "{text}");
    }
}
