//! A reader of OpenMetrics text 1.0.0 and Prometheus text 0.0.4. It refuses what the exporters
//! could do wrong: a family or a sample twice, a sample of another family, and a missing end mark.
//! A library writes the text, and `promtool` checks the older format.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Format {
    OpenMetrics,
    Plain,
}

#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) help: String,
    pub(crate) unit: String,
    pub(crate) samples: Vec<Sample>,
}

pub(crate) type Labels = BTreeMap<String, String>;

#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) value: f64,
}

#[derive(Debug)]
pub(crate) struct Scrape {
    pub(crate) families: Vec<Family>,
}

impl Scrape {
    pub(crate) fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.families.iter().flat_map(|family| &family.samples)
    }

    /// Returns the names of all samples.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.samples().map(|sample| sample.name.as_str()).collect()
    }

    /// Returns the values of the label `timer`.
    pub(crate) fn timers(&self) -> BTreeSet<&str> {
        self.samples().filter_map(|sample| sample.labels.get("timer")).map(String::as_str).collect()
    }

    /// Returns the value of the sample with this name and no label but `timer`.
    pub(crate) fn value(&self, name: &str, timer: &str) -> f64 {
        let labels = Labels::from([("timer".to_owned(), timer.to_owned())]);
        let mut found = self.samples().filter(|sample| sample.name == name && sample.labels == labels);
        let value = found.next().unwrap_or_else(|| panic!("no {name} of {timer}")).value;
        assert!(found.next().is_none(), "{name} of {timer} twice");
        value
    }

    /// Returns the cumulative buckets of a timer's histogram as (bound, count).
    pub(crate) fn buckets(&self, name: &str, timer: &str) -> Vec<(f64, f64)> {
        let name = format!("{name}_bucket");
        let buckets = self.samples().filter(|sample| sample.name == name && sample.labels["timer"] == timer);
        buckets.map(|sample| (sample.labels["le"].parse().unwrap(), sample.value)).collect()
    }
}

pub(crate) fn parse(text: &str, format: Format) -> Result<Scrape, String> {
    let text = match format {
        Format::OpenMetrics => text.strip_suffix("# EOF\n").ok_or("no end mark")?,
        Format::Plain => text,
    };
    let mut families: Vec<Family> = Vec::new();
    for line in text.lines() {
        add(&mut families, line).map_err(|fault| format!("{fault}: {line}"))?;
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = families.iter().find(|family| !seen.insert(&family.name)) {
        return Err(format!("the family {} twice", twice.name));
    }
    let mut seen = BTreeSet::new();
    let twice = families.iter().flat_map(|family| &family.samples).find(|it| !seen.insert((&it.name, &it.labels)));
    twice.map_or(Ok(()), |twice| Err(format!("the sample {twice:?} twice")))?;
    Ok(Scrape { families })
}

fn add(families: &mut Vec<Family>, line: &str) -> Result<(), &'static str> {
    let Some(metadata) = line.strip_prefix("# ") else {
        let family = families.last_mut().ok_or("a sample before any family")?;
        let sample = sample(line).ok_or("not a sample")?;
        let suffix = sample.name.strip_prefix(&family.name).ok_or("a sample of another family")?;
        if !["", "_total", "_bucket", "_sum", "_count", "_info"].contains(&suffix) {
            return Err("a sample of another family");
        }
        family.samples.push(sample);
        return Ok(());
    };
    let [keyword, name, rest] = metadata.splitn(3, ' ').collect::<Vec<_>>()[..] else { return Err("not metadata") };
    if families.last().is_none_or(|family| family.name != name) {
        families.push(Family { name: name.to_owned(), ..Family::default() });
    }
    let family = families.last_mut().ok_or("no family")?;
    match keyword {
        "HELP" => rest.clone_into(&mut family.help),
        "TYPE" => rest.clone_into(&mut family.kind),
        "UNIT" => rest.clone_into(&mut family.unit),
        _ => return Err("an unknown keyword"),
    }
    Ok(())
}

fn sample(line: &str) -> Option<Sample> {
    let (name, rest) = line.split_at(line.find(['{', ' '])?);
    let (labels, rest) = rest.strip_prefix('{').map_or(Some((Labels::new(), rest)), labels)?;
    Some(Sample { name: name.to_owned(), labels, value: rest.strip_prefix(' ')?.parse().ok()? })
}

/// Splits off the labels up to their closing brace.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    loop {
        let (key, value) = rest.split_once("=\"")?;
        let mut unescaped = String::new();
        let mut chars = value.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at + 1,
                (_, '\\') => unescaped.push(match chars.next()?.1 {
                    'n' => '\n',
                    same => same,
                }),
                (_, other) => unescaped.push(other),
            }
        };
        labels.insert(key.to_owned(), unescaped);
        rest = &value[end..];
        match rest.split_at_checked(1)? {
            (",", more) => rest = more,
            ("}", after) => return Some((labels, after)),
            _ => return None,
        }
    }
}
