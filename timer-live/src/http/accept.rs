//! Content negotiation, that is, the choice of a format by the header `Accept`.

use super::plain_text;
use timer_metrics::prometheus_client::encoding::text;
use timer_metrics::prometheus_client::registry::Registry;

/// The formats of metrics. Every version of Prometheus reads at least one of the two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    OpenMetrics,
    Plain,
    /// Messages with their lengths, which alone can have native histograms.
    #[cfg(feature = "protobuf")]
    Protobuf,
}

impl Format {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
            #[cfg(feature = "protobuf")]
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// Returns the metrics of a registry, or `None` if a collector fails.
    pub(crate) fn encode(self, registry: &Registry) -> Option<Vec<u8>> {
        #[cfg(feature = "protobuf")]
        if self == Format::Protobuf {
            return timer_metrics::prometheus_client::encoding::prometheus_protobuf::encode_to_vec(registry).ok();
        }
        let mut text = String::new();
        text::encode(&mut text, registry).ok()?;
        let text = if self == Format::Plain { plain_text::from_openmetrics(&text) } else { text };
        Some(text.into_bytes())
    }

    /// Returns the format that `accept` prefers. `accept` has all values of the header, joined by
    /// commas. Protobuf wins a tie, and then OpenMetrics. The plain format is the default, because
    /// every client can read it.
    pub(crate) fn wanted(accept: &str) -> Self {
        #[cfg(feature = "protobuf")]
        {
            let is_protobuf = |range: &Range| {
                range.media == "application/vnd.google.protobuf"
                    && range.is("proto", "io.prometheus.client.MetricFamily")
                    && range.is("encoding", "delimited")
            };
            let (protobuf, texts): (Vec<_>, Vec<_>) = accept.split(',').map(Range::parse).partition(is_protobuf);
            let greatest = |ranges: Vec<Range>| ranges.into_iter().map(|range| range.weight).max().unwrap_or(0);
            let weight = greatest(protobuf);
            if weight > 0 && weight >= greatest(texts) {
                return Format::Protobuf;
            }
        }
        Self::wanted_text(accept)
    }

    /// Returns the text format that `accept` prefers.
    pub(crate) fn wanted_text(accept: &str) -> Self {
        let mut openmetrics = 0;
        let mut plain = 0;
        for range in accept.split(',').map(Range::parse) {
            match range.media.as_str() {
                "application/openmetrics-text" if range.is("version", "1.0.0") => {
                    openmetrics = openmetrics.max(range.weight);
                }
                "text/plain" if range.is("version", "0.0.4") => plain = plain.max(range.weight),
                "text/*" | "*/*" => plain = plain.max(range.weight),
                _ => {}
            }
        }
        if openmetrics > 0 && openmetrics >= plain { Format::OpenMetrics } else { Format::Plain }
    }
}

/// One media range of an `Accept`.
struct Range<'a> {
    media: String,
    /// The parameters, other than the weight, with lowercase names.
    parameters: Vec<(String, &'a str)>,
    /// The weight in thousandths.
    weight: u32,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let mut parameters = Vec::new();
        let mut weight = 1_000;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim().to_ascii_lowercase() {
                name if name == "q" => weight = thousandths(value.trim()),
                name => parameters.push((name, value.trim().trim_matches('"'))),
            }
        }
        Self { media, parameters, weight }
    }

    /// Returns `true` if the parameter has this value or is absent.
    fn is(&self, name: &str, offered: &str) -> bool {
        self.parameters.iter().rev().find(|(key, _)| key == name).is_none_or(|(_, value)| *value == offered)
    }
}

fn thousandths(q: &str) -> u32 {
    let q = q.parse::<f32>().ok().filter(|q| (0.0..=1.0).contains(q));
    q.map_or(0, |q| (q * 1_000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::Format::{self, OpenMetrics, Plain};

    const PROTOBUF: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

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
        ];
        for (accept, format) in clients {
            assert_eq!([Format::wanted(accept), Format::wanted_text(accept)], [format; 2], "{accept}");
        }
        assert_eq!(Format::wanted_text(PROTOBUF), Plain);
    }

    #[cfg(feature = "protobuf")]
    #[test]
    fn protobuf_is_given_only_where_it_is_preferred() {
        // As Prometheus 2.42 and 3 ask if native histograms are enabled.
        for rest in [
            "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,*/*;q=0.1",
        ] {
            let accept = format!("{PROTOBUF},{rest}");
            assert_eq!([Format::wanted(&accept), Format::wanted_text(&accept)], [Format::Protobuf, OpenMetrics]);
        }
        for other in ["proto=other;encoding=delimited", "proto=io.prometheus.client.MetricFamily;encoding=text"] {
            assert_eq!(Format::wanted(&format!("application/vnd.google.protobuf;{other}")), Plain, "{other}");
        }
        assert_eq!(Format::wanted(&format!("{PROTOBUF};q=0.2,text/plain;q=0.3")), Plain);
        assert_eq!(Format::wanted(&format!("{PROTOBUF};q=0")), Plain);
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
