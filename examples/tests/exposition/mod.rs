//! A strict parser of OpenMetrics text 1.0.0, which shares no code with the exporter. Everything
//! outside the format is an error.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

use std::collections::{BTreeMap, BTreeSet};

/// The samples of a scrape by name and labels, as written.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    families: Vec<Family>,
}

#[derive(Debug)]
struct Family {
    name: String,
    kind: Kind,
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Unknown,
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Exposition {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.strip_suffix("# EOF\n").ok_or("no `# EOF` at the end")?;
        let mut found = Self::default();
        for line in lines.split_terminator('\n') {
            found.line(line).map_err(|fault| format!("{fault}: `{line}`"))?;
        }
        if !lines.is_empty() && !lines.ends_with('\n') {
            return Err("a line has no end".to_owned());
        }
        let mut names = BTreeSet::new();
        for family in &found.families {
            if !names.insert(&family.name) {
                return Err(format!("the family {} is interrupted", family.name));
            }
            family.check().map_err(|fault| format!("{}: {fault}", family.name))?;
        }
        Ok(found)
    }

    /// Returns the value of the sample with this name and only the label `timer`.
    pub(crate) fn value(&self, name: &str, timer: &str) -> Option<f64> {
        let alone =
            |sample: &&Sample| sample.labels.len() == 1 && sample.labels.get("timer").is_some_and(|t| t == timer);
        self.samples().filter(|sample| sample.name == name).find(alone).map(|sample| sample.value)
    }

    /// Returns the values that may only grow, namely counters and the counts of histograms, by name
    /// and labels.
    pub(crate) fn growing(&self) -> BTreeMap<String, f64> {
        let growing = self.families.iter().filter(|family| matches!(family.kind, Kind::Counter | Kind::Histogram));
        let samples = growing.flat_map(|family| &family.samples);
        samples.map(|sample| (format!("{}{:?}", sample.name, sample.labels), sample.value)).collect()
    }

    fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.families.iter().flat_map(|family| &family.samples)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let Some(descriptor) = line.strip_prefix("# ") else {
            let sample = Sample::parse(line)?;
            let family = self.families.last_mut().ok_or("a sample without a family")?;
            let suffix = sample.name.strip_prefix(family.name.as_str()).ok_or("a sample of another family")?;
            let allowed: &[&str] = match family.kind {
                Kind::Unknown | Kind::Gauge => &[""],
                Kind::Counter => &["_total", "_created"],
                Kind::Histogram => &["_bucket", "_count", "_sum", "_created"],
            };
            if !allowed.contains(&suffix) {
                return Err(format!("not a sample of a {:?}", family.kind));
            }
            family.samples.push(sample);
            return Ok(());
        };
        let mut words = descriptor.splitn(3, ' ');
        let (Some(keyword), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) else {
            return Err("a descriptor has three parts".to_owned());
        };
        if !is_name(name) {
            return Err("not a name".to_owned());
        }
        if self.families.last().is_none_or(|family| family.name != name) {
            self.families.push(Family { name: name.to_owned(), kind: Kind::Unknown, samples: Vec::new() });
        }
        let family = self.families.last_mut().ok_or("no family")?;
        if !family.samples.is_empty() {
            return Err("a descriptor after samples".to_owned());
        }
        match (keyword, rest) {
            ("TYPE", _) if family.kind != Kind::Unknown => return Err("a second type".to_owned()),
            ("TYPE", "counter") => family.kind = Kind::Counter,
            ("TYPE", "gauge") => family.kind = Kind::Gauge,
            ("TYPE", "histogram") => family.kind = Kind::Histogram,
            ("UNIT", unit) if name.strip_suffix(unit).is_some_and(|stem| stem.ends_with('_')) => {}
            ("HELP", help) if !help.is_empty() => {}
            _ => return Err("not a descriptor".to_owned()),
        }
        Ok(())
    }
}

impl Family {
    fn check(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.samples.iter().find(|sample| !seen.insert((&sample.name, &sample.labels))) {
            return Err(format!("twice {twice:?}"));
        }
        let counts = matches!(self.kind, Kind::Counter | Kind::Histogram);
        if let Some(bad) =
            self.samples.iter().find(|sample| counts && !(sample.value.is_finite() && sample.value >= 0.0))
        {
            return Err(format!("cannot be counted {bad:?}"));
        }
        if self.kind == Kind::Histogram { self.check_buckets() } else { Ok(()) }
    }

    /// Checks that bounds and counts rise and that the last bucket has the count.
    fn check_buckets(&self) -> Result<(), String> {
        let mut by_labels: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
        for sample in self.samples.iter().filter(|sample| sample.name.ends_with("_bucket")) {
            let mut labels = sample.labels.clone();
            let bound = number(&labels.remove("le").ok_or("a bucket without `le`")?)?;
            by_labels.entry(labels).or_default().push((bound, sample.value));
        }
        for (labels, buckets) in by_labels {
            if !buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1) {
                return Err(format!("buckets do not rise: {buckets:?}"));
            }
            let count = self.samples.iter().find(|s| s.name.ends_with("_count") && s.labels == labels);
            let all = count.map(|count| (f64::INFINITY, count.value));
            if all.is_none() || buckets.last().copied() != all {
                return Err(format!("the last of {buckets:?} is not {all:?}"));
            }
        }
        Ok(())
    }
}

impl Sample {
    fn parse(line: &str) -> Result<Self, String> {
        let (name, rest) = line.split_at(line.find(['{', ' ']).ok_or("no value")?);
        if !is_name(name) {
            return Err("not a name".to_owned());
        }
        let mut labels = BTreeMap::new();
        let mut rest = rest;
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            while !rest.starts_with('}') {
                let (label, value) = rest.split_once("=\"").ok_or("a label without value")?;
                if !is_name(label) || label.contains(':') {
                    return Err("not a label".to_owned());
                }
                let (value, after) = quoted(value)?;
                if labels.insert(label.to_owned(), value).is_some() {
                    return Err("a label twice".to_owned());
                }
                rest = after.strip_prefix(',').unwrap_or(after);
                if after.len() == rest.len() && !rest.starts_with('}') || after.starts_with(",}") {
                    return Err("labels are not separated by commas".to_owned());
                }
            }
            rest = &rest[1..];
        }
        let value = number(rest.strip_prefix(' ').ok_or("no blank before the value")?)?;
        Ok(Self { name: name.to_owned(), labels, value })
    }
}

/// Splits a text at the closing quote.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => value.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, c @ ('\\' | '"'))) => c,
                _ => return Err("an unknown escape".to_owned()),
            }),
            c => value.push(c),
        }
    }
    Err("a quote is not closed".to_owned())
}

fn number(text: &str) -> Result<f64, String> {
    match text {
        "+Inf" => Ok(f64::INFINITY),
        _ if text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) => {
            text.parse().map_err(|_| "not a number".to_owned())
        }
        _ => Err("not a number".to_owned()),
    }
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':');
    begins && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}
