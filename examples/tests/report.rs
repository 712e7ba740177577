//! The page that `--report` writes, read like a visitor would. A figure that occurs in several
//! places is the same in all of them, and the sums of the charts are those of the tables.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn page(name: &str, args: &[&str]) -> (String, String) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sessions"));
    let output = command.args(args).arg("--report").arg(&path).output().unwrap();
    assert!(output.status.success());
    (fs::read_to_string(&path).unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// Returns the number at the end of a text, such as `2989` for `with 2,989`.
fn number(text: &str) -> Option<u64> {
    let from = text.rfind(|c: char| !c.is_ascii_digit() && c != ',').map_or(0, |at| at + 1);
    text[from..].replace(',', "").parse().ok()
}

/// Returns the figures under each name, wherever they occur.
fn named(html: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for figure in html.split("data-figure=\"").skip(1) {
        let (name, rest) = figure.split_once("\">").unwrap();
        found.entry(name).or_default().push(rest.split_once("</span>").unwrap().0);
    }
    found
}

/// Returns the text between the tags, without the titles that appear on pointing.
fn words(html: &str) -> String {
    let body = html.split_once("<body>").unwrap().1;
    let mut text = String::new();
    for piece in body.split('<').skip(1) {
        let (tag, words) = piece.split_once('>').unwrap();
        // Each cell of a table is a separate sentence, and so is each text of a chart.
        let joins = tag.starts_with("span") || tag == "/span";
        text += if joins { "" } else { "\n" };
        text += words;
    }
    text
}

/// Returns the sum of all counts in the titles of a figure, for each of its pictures.
fn sums(html: &str, title: &str, count: impl Fn(&str) -> Option<u64>) -> Vec<u64> {
    let figure = html.split("<figure").find(|figure| figure.contains(&format!("<h2>{title}</h2>"))).unwrap();
    let pictures = figure.split("<svg ").skip(1);
    let titles = |picture: &str| -> Vec<String> {
        picture.split("<title>").skip(1).map(|title| title.split_once("</title>").unwrap().0.to_owned()).collect()
    };
    pictures.map(|picture| titles(picture).iter().map(|title| count(title).unwrap()).sum()).collect()
}

fn check(html: &str, summary: &str) -> BTreeMap<String, u64> {
    let figures = named(html);
    for (name, values) in &figures {
        assert!(values.iter().all(|value| value == &values[0]), "{name}: {values:?}");
    }
    let get = |name: &str| number(figures[name][0]).unwrap();
    assert_eq!(get("scheduled"), get("sessions") + get("again"));
    assert_eq!(get("scheduled"), get("pending") + get("expired") + get("cancelled"));
    assert_eq!(summary.lines().last().and_then(number), Some(get("sessions")));

    // Each figure in the text is the one under the name, whether it is marked there or not.
    let text = words(html);
    for (word, name) in [(" sessions", "sessions"), (" requests", "requests"), (" hosts", "hosts"), (" turns", "turns")]
    {
        for (before, after) in text.match_indices(word).map(|(at, _)| text.split_at(at)) {
            let due = after.starts_with(" turns that had a tick");
            if let Some(given) = number(before).filter(|_| before.ends_with(|c: char| c.is_ascii_digit())) {
                assert!(given == get(name) || due && given <= get(name), "{given}{word}, but {}", get(name));
            }
        }
    }

    let opened = sums(html, "Sessions opened", |title| number(title.strip_suffix(" opened")?));
    assert!(!opened.is_empty() && opened.iter().all(|sum| *sum == get("sessions")), "{opened:?}");
    let lengths = html.split("<table class=\"lengths\">").nth(1).unwrap().split_once("</table>").unwrap().0;
    let rows = lengths.split("<td class=\"count\">").skip(1);
    assert_eq!(rows.map(|row| number(row.split_once('<').unwrap().0).unwrap()).sum::<u64>(), get("sessions"));
    figures.iter().filter_map(|(name, values)| Some(((*name).to_owned(), number(values[0])?))).collect()
}

#[test]
fn repeated_figures_agree_on_the_real_clock() {
    // The speed is so high that timeouts run before the replay has reached their second.
    let (html, summary) = page("real.html", &["--speed", "100000", "--executor", "rayon"]);
    let figures = check(&html, &summary);
    let lags = |title| sums(&html, title, |title| number(title.split_once(": ")?.1.rsplit_once(", ")?.0));
    let timeouts = lags("Lag of timeouts");
    assert!(!timeouts.is_empty() && timeouts.iter().all(|sum| *sum == figures["expired"]), "{timeouts:?}");
    let ticks = lags("Lag of ticks");
    let said = html.split_once(" turns that had a tick").and_then(|(before, _)| number(before)).unwrap();
    assert!(!ticks.is_empty() && ticks.iter().all(|sum| *sum == said), "{ticks:?}, but {said}");
    assert!(named(&html)["turns"].len() == 2 && said <= figures["turns"]);
    // The headline has the same figure as the chart.
    assert!(html.contains(&format!("p99 {}", named(&html)["p99"][0])));
    assert!(!html.contains("a second"), "the page has no rate, which would depend on the speed of the replay");
}

#[test]
fn repeated_figures_agree_on_virtual_time() {
    let (html, summary) = page("virtual.html", &["--virtual"]);
    let figures = check(&html, &summary);
    assert_eq!((figures["sessions"], figures["again"]), (2989, 0));
    assert!(!html.contains(">0 ns<") && !html.contains("<h2>Lag"), "virtual time has no lag to show");
}
