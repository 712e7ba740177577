//! The tables of the book, which have to name tests that exist.

use std::fs;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// Returns the words in backquotes that look like names of tests, from the tables of a chapter.
fn named_tests(chapter: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("{FOLDER}/src/book/{chapter}.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let words = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    words.filter(|word| word.matches('_').count() >= 3).map(str::to_owned).collect()
}

#[test]
fn each_test_that_the_book_names_exists() {
    let files = ["", "durable", "postgres"].map(|tests| fs::read_dir(format!("{FOLDER}/tests/{tests}")).unwrap());
    let files = files.into_iter().flatten().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let code: String = files.map(|path| fs::read_to_string(path).unwrap()).collect();
    for (chapter, least) in [("promises", 46), ("faults", 20), ("postgres", 20)] {
        let tests = named_tests(chapter);
        assert!(tests.len() >= least, "{chapter}: {tests:?}");
        let unknown: Vec<_> = tests.iter().filter(|test| !code.contains(&format!("fn {test}()"))).collect();
        assert!(unknown.is_empty(), "{chapter}: {unknown:?}");
    }
}
