//! Content negotiation, that is, the choice between the two text formats by the header `Accept`.

/// The two text formats. Every version of Prometheus reads at least one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    Plain,
}

impl Format {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Returns the format that `accept` prefers. `accept` has all values of the header, joined by
    /// commas. OpenMetrics wins a tie. The plain format is the default, because every client can
    /// read it.
    pub(super) fn wanted(accept: &str) -> Self {
        let (mut openmetrics, mut plain) = (0, 0);
        for range in accept.split(',').map(Range::parse) {
            match range.media.as_str() {
                "application/openmetrics-text" if range.is_version("1.0.0") => {
                    openmetrics = openmetrics.max(range.weight);
                }
                "text/plain" if range.is_version("0.0.4") => plain = plain.max(range.weight),
                "text/*" | "*/*" => plain = plain.max(range.weight),
                _ => {}
            }
        }
        if openmetrics > 0 && openmetrics >= plain { Format::OpenMetrics } else { Format::Plain }
    }
}

/// One media range of an `Accept`.
struct Range {
    media: String,
    version: Option<String>,
    /// The weight in thousandths.
    weight: u32,
}

impl Range {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut version, mut weight) = (None, 1_000);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => weight = thousandths(value.trim()),
                "version" => version = Some(value.trim().trim_matches('"').to_owned()),
                _ => {}
            }
        }
        Self { media, version, weight }
    }

    fn is_version(&self, offered: &str) -> bool {
        self.version.as_ref().is_none_or(|version| version == offered)
    }
}

fn thousandths(q: &str) -> u32 {
    let q = q.parse::<f32>().ok().filter(|q| (0.0..=1.0).contains(q));
    q.map_or(0, |q| (q * 1_000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::Format::{self, OpenMetrics, Plain};

    #[test]
    fn real_clients_get_their_preferred_format() {
        let clients = [
            ("", Plain),
            ("*/*", Plain),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Plain),
            ("application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Plain),
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                OpenMetrics,
            ),
            ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", Plain),
        ];
        for (accept, format) in clients {
            assert_eq!(Format::wanted(accept), format, "{accept}");
        }
    }

    #[test]
    fn weights_decide_and_invalid_weights_are_zero() {
        let openmetrics = "application/openmetrics-text";
        assert_eq!(Format::wanted(openmetrics), OpenMetrics);
        assert_eq!(Format::wanted("Application/OpenMetrics-Text; Version=\"1.0.0\""), OpenMetrics);
        assert_eq!(Format::wanted(&format!("{openmetrics}, text/plain")), OpenMetrics);
        assert_eq!(Format::wanted(&format!("{openmetrics};q=0.4, text/plain;q=0.5")), Plain);
        for q in ["0", "0.0", "-1", "2", "NaN", "inf", "", "x"] {
            assert_eq!(Format::wanted(&format!("{openmetrics};q={q}")), Plain, "{q}");
        }
        assert_eq!(Format::wanted(";;==,,q=1;\u{7f}"), Plain);
    }
}
