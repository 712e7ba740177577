//! The list of mutations, which are kept as text in `xtask/mutants`.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::run::{Failure, Result, root};

/// The folder of the list.
pub(crate) const FOLDER: &str = "xtask/mutants";

/// A change to the code that a test must catch.
#[derive(Debug, Clone, Default)]
pub(super) struct Mutant {
    pub(super) title: String,
    /// The changed file, from the root.
    pub(super) file: String,
    pub(super) caught_by: Option<Test>,
    /// The reason why the change makes no difference.
    pub(super) equivalent: Option<String>,
    /// Lines of the file without their indentation, and the lines that replace them.
    old: Vec<String>,
    new: Vec<String>,
}

/// A test, and the program that contains it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Test {
    pub(super) program: Program,
    pub(super) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Program {
    /// The words for cargo that choose a test program, such as `-p timer-core --lib`.
    Tests(String),
    /// The loom models of timer-core.
    Models,
}

impl Program {
    /// Returns the folder of the package that contains the program.
    fn package(&self) -> &str {
        match self {
            Program::Tests(words) => words.split(' ').skip_while(|word| *word != "-p").nth(1).unwrap_or("."),
            Program::Models => "timer-core",
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Program::Tests(words) => f.write_str(words),
            Program::Models => f.write_str("loom"),
        }
    }
}

impl Mutant {
    /// Returns the text of the file with the mutation.
    ///
    /// # Errors
    ///
    /// Fails if the mutation does not apply exactly once, because the code has changed.
    pub(super) fn apply(&self, text: &str) -> Result<String> {
        let lines: Vec<&str> = text.lines().collect();
        let matches = |window: &[&str]| self.old.iter().zip(window).all(|(old, line)| old == line.trim());
        let windows = lines.windows(self.old.len()).enumerate();
        let places: Vec<usize> = windows.filter(|(_, window)| matches(window)).map(|(at, _)| at).collect();
        let [at] = places[..] else {
            let stale = format!("`{}` applies {} times to {}", self.title, places.len(), self.file);
            return Err(Failure::new(format!("{stale}; adapt it in {FOLDER}")));
        };
        let new = self.new.iter().map(String::as_str);
        let mutated = lines[..at].iter().copied().chain(new).chain(lines[at + self.old.len()..].iter().copied());
        Ok(mutated.map(|line| format!("{line}\n")).collect())
    }
}

/// Reads the list and checks that each mutation applies.
pub(super) fn read() -> Result<Vec<Mutant>> {
    let mut paths: Vec<_> =
        fs::read_dir(root().join(FOLDER))?.map(|entry| entry.map(|it| it.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let mut mutants = Vec::new();
    for path in paths {
        let listed = parse(&fs::read_to_string(&path)?);
        mutants.extend(listed.map_err(|line| Failure::new(format!("{}: cannot read `{line}`", path.display())))?);
    }
    Ok(mutants)
}

/// Returns a message for each mutation that does not apply any more, or whose test is gone.
pub(crate) fn stale() -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for mutant in read()? {
        let text = fs::read_to_string(root().join(&mutant.file))?;
        stale.extend(mutant.apply(&text).err().map(|failure| failure.message));
        let Some(Test { program, name }) = &mutant.caught_by else { continue };
        // A test of a loom model is called `holds`, in a module with the name of the model.
        let name = name.strip_suffix("::holds").unwrap_or(name);
        let function = format!("fn {}(", name.rsplit("::").next().unwrap_or(name));
        if !contains(&root().join(program.package()), &function)? {
            stale.push(format!("`{}` names the test {name}, which is gone; adapt it in {FOLDER}", mutant.title));
        }
    }
    Ok(stale)
}

/// Returns `true` if a Rust file in a folder contains `text`.
fn contains(folder: &Path, text: &str) -> Result<bool> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if (path.is_dir() && contains(&path, text)?) || (is_rust && fs::read_to_string(&path)?.contains(text)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Parses a file of the list. Returns the first line that has no meaning as an error.
fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants: Vec<Mutant> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("== ") {
            mutants.push(Mutant { title: title.to_owned(), ..Mutant::default() });
            continue;
        }
        let mutant = mutants.last_mut().ok_or(line)?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, line.split_at_checked(1)) {
            ("file", _) => rest.clone_into(&mut mutant.file),
            ("equivalent", _) => mutant.equivalent = Some(rest.to_owned()),
            ("model", _) => mutant.caught_by = Some(Test { program: Program::Models, name: rest.to_owned() }),
            ("test", _) => {
                let (words, name) = rest.rsplit_once(' ').ok_or(line)?;
                mutant.caught_by = Some(Test { program: Program::Tests(words.to_owned()), name: name.to_owned() });
            }
            (_, Some(("-", old))) => mutant.old.push(old.trim().to_owned()),
            (_, Some(("+", new))) => mutant.new.push(new.trim().to_owned()),
            (_, Some((" ", both))) => {
                mutant.old.push(both.trim().to_owned());
                mutant.new.push(both.trim().to_owned());
            }
            _ => return Err(line.to_owned()),
        }
    }
    let is_whole = |it: &&Mutant| it.old != it.new && it.caught_by.is_some() != it.equivalent.is_some();
    match mutants.iter().find(|mutant| !is_whole(mutant) || mutant.old.is_empty()) {
        Some(mutant) => Err(mutant.title.clone()),
        None => Ok(mutants),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "# A comment.\n\n== a title\nfile a.rs\ntest -p a --lib m::f\n let a;\n-b();\n+c();\n";

    #[test]
    fn each_mutation_applies() {
        assert_eq!(stale().unwrap(), Vec::<String>::new());
        let titles: std::collections::BTreeSet<_> = read().unwrap().into_iter().map(|mutant| mutant.title).collect();
        assert_eq!(titles.len(), read().unwrap().len(), "a title stands twice");
    }

    #[test]
    fn a_mutation_replaces_its_lines() {
        let mutant = &parse(ONE).unwrap()[0];
        assert_eq!(mutant.caught_by.as_ref().unwrap().name, "m::f");
        assert_eq!(mutant.apply("    let a;\n    b();\n}\n").unwrap(), "let a;\nc();\n}\n");
        for text in ["", "let a;\n\nb();\n", "let a;\nb();\nlet a;\nb();\n"] {
            assert!(mutant.apply(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_is_read_strictly() {
        assert_eq!(parse("file a.rs").unwrap_err(), "file a.rs");
        assert_eq!(parse(&ONE.replace("test -p", "tset -p")).unwrap_err(), "tset -p a --lib m::f");
        assert_eq!(parse(&ONE.replace("+c", "+b")).unwrap_err(), "a title", "nothing changes");
        assert_eq!(parse(&format!("{ONE}equivalent why")).unwrap_err(), "a title", "either a test or a reason");
    }
}
