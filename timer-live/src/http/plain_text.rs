//! Translation of OpenMetrics text 1.0.0, as `prometheus-client` writes it, into Prometheus text
//! 0.0.4 for older scrapers.
//!
//! In the older format the metadata of a counter use its full name, some types have other names,
//! and there are no units, no exemplars and no end mark. Values and labels are the same in both.

/// Translates `text` into the older format.
pub(super) fn from_openmetrics(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The help comes before the type, but its name depends on the type.
    let mut help = None;
    // `lines` would remove a carriage return before a line's end, but here it is an ordinary
    // character.
    for line in text.split('\n') {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "unknown"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                same => ("", same),
            };
            if let Some((_, help)) = help.take().filter(|(helped, _)| *helped == name) {
                plain.extend(["# HELP ", name, suffix, " ", help, "\n"]);
            }
            plain.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
        } else if !line.is_empty() && !line.starts_with('#') {
            plain.extend([without_exemplar(line), "\n"]);
        }
    }
    plain
}

/// Returns a sample up to the ` # ` that begins an exemplar, ignoring ` # ` within the value of a
/// label.
fn without_exemplar(sample: &str) -> &str {
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in sample.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'#' if !quoted => return sample[..at].trim_end(),
            _ => {}
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::from_openmetrics;

    #[test]
    fn translates_every_type() {
        let openmetrics = "# HELP a Help with # and  blanks.\n# TYPE a counter\na_total{x=\"1\"} 1\n\
                           # HELP b_seconds B.\n# TYPE b_seconds gauge\n# UNIT b_seconds seconds\nb_seconds 1.5\n\
                           # HELP c C.\n# TYPE c info\nc_info{v=\"1\"} 1\n# HELP d D.\n# TYPE d unknown\nd 1\n\
                           # HELP e E.\n# TYPE e histogram\ne_sum 0.0\ne_count 0\ne_bucket{le=\"+Inf\"} 0\n# EOF\n";
        let plain = "# HELP a_total Help with # and  blanks.\n# TYPE a_total counter\na_total{x=\"1\"} 1\n\
                     # HELP b_seconds B.\n# TYPE b_seconds gauge\nb_seconds 1.5\n\
                     # HELP c_info C.\n# TYPE c_info gauge\nc_info{v=\"1\"} 1\n# HELP d D.\n# TYPE d untyped\nd 1\n\
                     # HELP e E.\n# TYPE e histogram\ne_sum 0.0\ne_count 0\ne_bucket{le=\"+Inf\"} 0\n";
        assert_eq!(from_openmetrics(openmetrics), plain);
    }

    #[test]
    fn drops_exemplars_and_keeps_similar_labels() {
        let openmetrics =
            "# TYPE a counter\na_total{x=\"b # {c\\\" # \\\\\",y=\"\r\"} 1 # {id=\"2 # 3\"} 1.0 4\n# EOF\n";
        let plain = "# TYPE a_total counter\na_total{x=\"b # {c\\\" # \\\\\",y=\"\r\"} 1\n";
        assert_eq!(from_openmetrics(openmetrics), plain);
    }
}
