//! A strict parser of OpenMetrics text 1.0.0 and Prometheus text 0.0.4. Everything outside the
//! formats is an error.

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
        buckets.map(|sample| (number(&sample.labels["le"]).unwrap(), sample.value)).collect()
    }
}

pub(crate) fn parse(text: &str, format: Format) -> Result<Scrape, String> {
    let text = text.strip_suffix('\n').ok_or("the last line has no end")?;
    let text = match format {
        Format::OpenMetrics if text == "# EOF" => return Ok(Scrape { families: Vec::new() }),
        Format::OpenMetrics => text.strip_suffix("\n# EOF").ok_or("no end mark")?,
        Format::Plain => text,
    };
    let mut families: Vec<Family> = Vec::new();
    for line in text.split('\n') {
        add(&mut families, line, format).map_err(|fault| format!("{fault}: {line}"))?;
    }
    families.iter().try_for_each(|family| check(family, format))?;
    let mut seen = BTreeSet::new();
    match families.iter().find(|family| !seen.insert(&family.name)) {
        Some(twice) => Err(format!("the family {} twice", twice.name)),
        None => Ok(Scrape { families }),
    }
}

fn add(families: &mut Vec<Family>, line: &str, format: Format) -> Result<(), String> {
    let Some(metadata) = line.strip_prefix("# ") else {
        let sample = sample(line)?;
        let family = families.last_mut().ok_or("a sample before any family")?;
        let allowed = suffixes(family, format).iter().any(|suffix| sample.name == format!("{}{suffix}", family.name));
        if !allowed {
            return Err(format!("not a sample of the {} {}", family.kind, family.name));
        }
        family.samples.push(sample);
        return Ok(());
    };
    let [keyword, name, rest] = metadata.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        return Err("not metadata".to_owned());
    };
    if families.last().is_none_or(|family| family.name != name) {
        if !is_metric_name(name) {
            return Err("not a name".to_owned());
        }
        families.push(Family { name: name.to_owned(), ..Family::default() });
    }
    let family = families.last_mut().ok_or("no family")?;
    let field = match keyword {
        "HELP" => &mut family.help,
        "TYPE" => &mut family.kind,
        "UNIT" if format == Format::OpenMetrics => &mut family.unit,
        _ => return Err("an unknown keyword".to_owned()),
    };
    if !field.is_empty() || !family.samples.is_empty() {
        return Err("metadata twice or too late".to_owned());
    }
    rest.clone_into(field);
    Ok(())
}

/// Returns the suffixes that a family's name may have in its samples.
fn suffixes(family: &Family, format: Format) -> &'static [&'static str] {
    match (family.kind.as_str(), format) {
        ("counter", Format::OpenMetrics) => &["_total"],
        ("histogram", _) => &["_bucket", "_sum", "_count"],
        ("info", Format::OpenMetrics) => &["_info"],
        ("counter" | "untyped", Format::Plain) | ("unknown", Format::OpenMetrics) | ("gauge", _) => &[""],
        _ => &[],
    }
}

fn check(family: &Family, format: Format) -> Result<(), String> {
    let Family { name, kind, unit, samples, .. } = family;
    let fault = |what: &str| Err(format!("{name}: {what}"));
    if samples.is_empty() {
        return fault("no samples");
    }
    if !unit.is_empty() && !name.ends_with(&format!("_{unit}")) {
        return fault("the name does not end in the unit");
    }
    if format == Format::Plain && kind == "counter" && !name.ends_with("_total") {
        return fault("a counter without _total");
    }
    let mut seen = BTreeSet::new();
    if !samples.iter().all(|sample| seen.insert((&sample.name, &sample.labels))) {
        return fault("a sample twice");
    }
    if kind == "counter" && samples.iter().any(|sample| !sample.value.is_finite() || sample.value < 0.0) {
        return fault("a counter that cannot be");
    }
    if kind == "histogram" { histogram(family) } else { Ok(()) }
}

/// Checks that each histogram has rising bounds, rising counts, `+Inf` as its last bound with the
/// count, and a sum.
fn histogram(family: &Family) -> Result<(), String> {
    let mut groups: BTreeMap<Labels, Vec<&Sample>> = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        labels.remove("le");
        groups.entry(labels).or_default().push(sample);
    }
    for (labels, samples) in groups {
        let samples_of = |suffix: &str| {
            let name = format!("{}_{suffix}", family.name);
            samples.iter().filter(|sample| sample.name == name).collect::<Vec<_>>()
        };
        let fault = |what: &str| Err(format!("{} {labels:?}: {what}", family.name));
        let (buckets, sums, counts) = (samples_of("bucket"), samples_of("sum"), samples_of("count"));
        let ([sum], [count]) = (&sums[..], &counts[..]) else { return fault("not one sum and one count") };
        if sum.value < 0.0 {
            return fault("a sum below zero");
        }
        let bounds = buckets.iter().map(|bucket| number(bucket.labels.get("le").map_or("", String::as_str)));
        let bounds: Vec<f64> = bounds.collect::<Result<_, _>>()?;
        if !bounds.windows(2).all(|pair| pair[0] < pair[1]) || bounds.last() != Some(&f64::INFINITY) {
            return fault("bounds that do not rise to +Inf");
        }
        if !buckets.windows(2).all(|pair| pair[0].value <= pair[1].value) {
            return fault("counts that fall");
        }
        if buckets.last().is_none_or(|last| last.value != count.value) {
            return fault("a last bucket that is not the count");
        }
    }
    Ok(())
}

fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, rest) = line.split_at(end);
    if !is_metric_name(name) {
        return Err("not a name".to_owned());
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Labels::new(), rest),
    };
    let value = number(rest.strip_prefix(' ').ok_or("no blank before the value")?)?;
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// Splits off the labels up to their closing brace.
fn labels(mut rest: &str) -> Result<(Labels, &str), String> {
    let mut labels = Labels::new();
    loop {
        let (key, value) = rest.split_once("=\"").ok_or("not a label")?;
        if !is_label_name(key) {
            return Err("not a label's name".to_owned());
        }
        let mut unescaped = String::new();
        let mut chars = value.char_indices();
        let end = loop {
            match chars.next().ok_or("a label without an end")? {
                (at, '"') => break at + 1,
                (_, '\\') => unescaped.push(match chars.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, same @ ('\\' | '"'))) => same,
                    _ => return Err("an unknown escape".to_owned()),
                }),
                (_, other) => unescaped.push(other),
            }
        };
        if labels.insert(key.to_owned(), unescaped).is_some() {
            return Err("a label twice".to_owned());
        }
        rest = &value[end..];
        match rest.split_at_checked(1) {
            Some((",", more)) => rest = more,
            Some(("}", after)) => return Ok((labels, after)),
            _ => return Err("no end of the labels".to_owned()),
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    let digits = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    match text {
        "+Inf" => Ok(f64::INFINITY),
        _ if text.chars().all(digits) => text.parse().map_err(|_| format!("`{text}` is not a number")),
        _ => Err(format!("`{text}` is not a number")),
    }
}

fn is_label_name(text: &str) -> bool {
    let is = |c: char| c == '_' || c.is_ascii_alphanumeric();
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is)
}

/// Returns `true` for a metric name, which may also contain colons.
fn is_metric_name(text: &str) -> bool {
    is_label_name(&text.replace(':', "_"))
}

#[test]
fn the_reader_refuses_what_the_formats_do_not_allow() {
    let good = "# HELP a A.\n# TYPE a counter\na_total{x=\"\\\\\\\"\\n\"} 1\n# EOF\n";
    assert_eq!(parse(good, Format::OpenMetrics).unwrap().families[0].samples[0].labels["x"], "\\\"\n");
    let histogram = |buckets: &str| format!("# TYPE h histogram\n{buckets}h_sum 0.5\nh_count 2\n# EOF\n");
    let bad = [
        "a 1\n# EOF\n".to_owned(),
        good.replace("# EOF\n", ""),
        good.replace("# EOF\n", "# EOF"),
        good.replace("_total", ""),
        good.replace("\"} 1", "\"}  1"),
        good.replace("\"} 1", "\",} 1"),
        good.replace("\"} 1", "\"} -1"),
        good.replace("\"} 1", "\"} NaN"),
        good.replace("\\n", "\\t"),
        good.replace("\\\"", "\""),
        good.replace("{x", "{x=\"\",x"),
        good.replace("# EOF\n", "a_total{x=\"\\\\\\\"\\n\"} 2\n# EOF\n"),
        good.replace("# EOF\n", "# HELP a A.\n# EOF\n"),
        "# TYPE b_s gauge\n# UNIT b_s seconds\nb_s 1\n# EOF\n".to_owned(),
        histogram(""),
        histogram("h_bucket{le=\"1\"} 1\n"),
        histogram("h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\n"),
        histogram("h_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 2\n"),
        histogram("h_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n"),
    ];
    for text in bad {
        assert!(parse(&text, Format::OpenMetrics).is_err(), "{text}");
    }
    assert!(parse(&histogram("h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n"), Format::OpenMetrics).is_ok());
    assert!(parse("# TYPE a_total counter\na_total 1\n", Format::Plain).is_ok());
    assert!(parse("# TYPE a counter\na_total 1\n", Format::Plain).is_err());
}
