//! The command line of the report, with the choice of workloads, peers, sizes and names.

use super::all_peers;
use crate::peers::{FLOOR, OURS};
use crate::settings::Size;
use crate::workloads;

/// The checked command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Names from [`workloads::ALL`].
    pub workloads: Vec<String>,
    /// Names of built-in peers, ours first.
    pub peers: Vec<String>,
    /// The sizes. [`Size::Quick`] also has few rounds and takes about 4 minutes.
    pub size: Size,
    /// The name under which the results are kept, by default `latest`.
    pub save: Option<String>,
    /// The name of earlier results to compare with.
    pub baseline: Option<String>,
    /// The name of earlier results whose plots are drawn again. Nothing is run.
    pub redraw: Option<String>,
}

impl Options {
    /// Reads `[W1,W2..] [--peers a,b] [--quick] [--save NAME] [--baseline NAME] [--redraw NAME]`.
    ///
    /// # Errors
    ///
    /// Fails with the wrong word and the reason.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let known: Vec<String> = workloads::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
        let (peers, mut workloads) = (all_peers(), Vec::new());
        let mut options =
            Self { workloads: known.clone(), peers, size: Size::Full, save: None, baseline: None, redraw: None };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word {
                "--quick" => options.size = Size::Quick,
                "--peers" => options.peers = chosen(value()?, &all_peers(), "timer")?,
                "--save" => options.save = Some(file_name(value()?)?),
                "--baseline" => options.baseline = Some(file_name(value()?)?),
                "--redraw" => options.redraw = Some(file_name(value()?)?),
                word if word.starts_with('-') => return Err(format!("no option `{word}`")),
                word => workloads.extend(chosen(word, &known, "workload")?),
            }
        }
        if !workloads.is_empty() {
            options.workloads = known.into_iter().filter(|name| workloads.contains(name)).collect();
        }
        if !options.peers.iter().any(|peer| peer == OURS) {
            // All ratios are relative to ours.
            options.peers.insert(0, OURS.to_owned());
        }
        if !options.peers.iter().any(|peer| peer == FLOOR) {
            // Storms and workloads of tasks are compared with the floor.
            options.peers.push(FLOOR.to_owned());
        }
        Ok(options)
    }
}

/// Returns the words of `list`, all of which must be known.
fn chosen(list: &str, known: &[String], what: &str) -> Result<Vec<String>, String> {
    for word in list.split(',') {
        if !known.iter().any(|known| known.eq_ignore_ascii_case(word)) {
            return Err(format!("no {what} `{word}`; there are {}", known.join(", ")));
        }
    }
    let wanted = |known: &&String| list.split(',').any(|word| known.eq_ignore_ascii_case(word));
    Ok(known.iter().filter(wanted).cloned().collect())
}

/// Returns `name` if it can be the name of a folder.
fn file_name(name: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(plain) {
        return Err(format!("`{name}` is not a plain name of letters, digits, `-`, `_` and `.`"));
    }
    Ok(name.to_owned())
}

/// Returns the usage with all names.
pub fn usage() -> String {
    let mut text = String::from(
        "bench-report [W1,W2..] [--peers a,b] [--quick] [--save NAME] [--baseline NAME]\n\
         bench-report --redraw NAME (the plots of an earlier run, from its figures)\n\nworkloads:\n",
    );
    for (name, what) in workloads::ALL {
        text += &format!("  {name:<12} {what}\n");
    }
    text + "\ntimers: " + &all_peers().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{Options, Size, usage};

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace())
    }

    #[test]
    fn no_arguments_select_everything() {
        let options = parse("").unwrap();
        assert_eq!((options.workloads.len(), options.size), (22, Size::Full));
        assert_eq!(options.peers, super::all_peers());
    }

    #[test]
    fn the_usual_order_is_kept_and_ours_is_included() {
        let options = parse("W12,w2 --peers heap,btree --quick --save a --baseline b").unwrap();
        assert_eq!(options.workloads, ["W2", "W12"]);
        assert_eq!(options.peers, ["timer", "btree", "heap", "floor"]);
        assert_eq!(options.size, Size::Quick);
        assert_eq!((options.save.as_deref(), options.baseline.as_deref()), (Some("a"), Some("b")));
        assert_eq!(parse("--redraw a").unwrap().redraw.as_deref(), Some("a"));
    }

    #[test]
    fn errors_name_the_wrong_word() {
        for (line, named) in [
            ("W99", "`W99`"),
            ("--peers btrie", "`btrie`"),
            ("--save", "`--save`"),
            ("--save ../x", "`../x`"),
            ("--loud", "`--loud`"),
        ] {
            assert!(parse(line).unwrap_err().contains(named), "{line}");
        }
        assert!(usage().contains("W12") && usage().contains("timer-hashed"));
    }
}
