//! Compares the table of faults, `FAULTS.md`, with the tests that it names and the `Bnn` marks in
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The parts of a file of this crate that the table refers to.
struct Source {
    /// The module as a path in code, such as `p07_idle::driver` or `wheel::tests`.
    module: String,
    functions: BTreeSet<String>,
    marks: BTreeSet<u32>,
}

#[derive(Debug)]
struct Row {
    id: u32,
    paths: Vec<String>,
    /// Whether the row gives a reason instead of a test: "as B32", "cannot exist" or "No test".
    is_excused: bool,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    ["src", "tests"].into_iter().for_each(|folder| read(&root.join(folder), "", &mut all));
    all
}

fn read(folder: &Path, parent: &str, all: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy();
        let module = if parent.is_empty() { name.to_string() } else { format!("{parent}::{name}") };
        if path.is_dir() {
            read(&path, &module, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let module = module.strip_suffix("::mod").unwrap_or(&module).to_string();
            all.push(Source { module, functions: functions(&text), marks: marks(&text) });
        }
    }
}

fn functions(text: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
    names.map(|name| name.split(['(', '<']).next().unwrap().to_string()).collect()
}

/// Returns the numbers of all `Bnn` in comments.
fn marks(text: &str) -> BTreeSet<u32> {
    let comments = text.lines().filter_map(|line| line.split_once("//")).map(|(_, comment)| comment);
    comments.flat_map(|comment| comment.split(|c: char| !c.is_alphanumeric())).filter_map(id).collect()
}

fn id(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('B')?;
    (digits.len() >= 2).then(|| digits.parse().ok()).flatten()
}

fn rows() -> Vec<Row> {
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/FAULTS.md")).unwrap();
    table.lines().filter(|line| line.starts_with("| B")).map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let [name, _, guarded] = cells[..] else { panic!("a row needs three cells: {line}") };
    let code = guarded.split('`').skip(1).step_by(2);
    let paths = code.filter(|code| code.contains("::") && code.starts_with(|c: char| c.is_lowercase()));
    let is_excused = ["as B", "cannot exist", "No test"].iter().any(|excuse| guarded.contains(excuse));
    let id = id(name).unwrap_or_else(|| panic!("a row needs an id such as B33: {line}"));
    Row { id, paths: paths.map(str::to_string).collect(), is_excused }
}

/// Returns the file that contains the test `path`, or the tests below it.
fn file<'a>(path: &str, sources: &'a [Source]) -> Option<&'a Source> {
    let find = |module: &str| sources.iter().find(|source| source.module == module);
    let (module, test) = path.rsplit_once("::")?;
    let inline = module.strip_suffix("::tests").and_then(find);
    let has_test = |source: &&Source| source.functions.contains(test);
    find(module).filter(has_test).or(inline.filter(has_test)).or_else(|| find(path))
}

#[test]
fn every_test_in_the_table_exists() {
    let sources = sources();
    let paths = rows().into_iter().flat_map(|row| row.paths.into_iter().map(move |path| (row.id, path)));
    let missing: Vec<_> = paths.filter(|(_, path)| file(path, &sources).is_none()).collect();
    assert!(missing.is_empty(), "FAULTS.md names missing tests: {missing:#?}");
}

#[test]
fn rows_are_in_order_and_complete() {
    let rows = rows();
    assert!(rows.len() > 80, "{} rows", rows.len());
    assert!(rows.is_sorted_by(|one, next| one.id < next.id), "rows are in order, without duplicates");
    let empty: Vec<_> = rows.iter().filter(|row| row.paths.is_empty() && !row.is_excused).collect();
    assert!(empty.is_empty(), "rows without a test and without a reason: {empty:#?}");
}

#[test]
fn every_mark_has_a_row() {
    let known: BTreeSet<u32> = rows().iter().map(|row| row.id).collect();
    let unknown: Vec<_> = sources()
        .into_iter()
        .flat_map(|source| source.marks.into_iter().map(move |mark| (source.module.clone(), mark)))
        .filter(|(module, mark)| !known.contains(mark) && !module.ends_with("faults_table"))
        .collect();
    assert!(unknown.is_empty(), "marks without a row in FAULTS.md: {unknown:?}");
}

#[test]
fn every_row_is_marked_in_its_tests() {
    let sources = sources();
    let is_marked = |row: &Row| {
        let mut files = row.paths.iter().filter_map(|path| file(path, &sources));
        files.any(|source| source.marks.contains(&row.id))
    };
    let unmarked: BTreeMap<_, _> =
        rows().into_iter().filter(|row| !row.is_excused && !is_marked(row)).map(|row| (row.id, row.paths)).collect();
    assert!(unmarked.is_empty(), "no test of these rows has their mark: {unmarked:#?}");
}
