//! Content negotiation, that is, the choice of a format by the header `Accept`.

use super::plain_text;
use timer_metrics::prometheus_client::encoding::text;
use timer_metrics::prometheus_client::registry::Registry;

/// The formats of metrics, those that win a tie last. Every version of Prometheus reads at least
/// one of the two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Format {
    /// The default, because every client can read it.
    Plain,
    OpenMetrics,
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
    /// commas.
    pub(crate) fn wanted(accept: &str) -> Self {
        Self::preferred(accept, |_| true)
    }

    /// Returns the text format that `accept` prefers.
    pub(crate) fn wanted_text(accept: &str) -> Self {
        Self::preferred(accept, |format| [Self::Plain, Self::OpenMetrics].contains(format))
    }

    fn preferred(accept: &str, is_allowed: impl Fn(&Self) -> bool) -> Self {
        let ranges = accept.split(',').map(Range::parse).filter(|range| range.weight > 0);
        let offered = ranges.filter_map(|range| Some((range.weight, range.format().filter(&is_allowed)?)));
        offered.max().map_or(Self::Plain, |(_, format)| format)
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

    /// Returns the format that the range names, if there is one.
    fn format(&self) -> Option<Format> {
        match self.media.as_str() {
            #[cfg(feature = "protobuf")]
            "application/vnd.google.protobuf"
                if self.is("proto", "io.prometheus.client.MetricFamily") && self.is("encoding", "delimited") =>
            {
                Some(Format::Protobuf)
            }
            "application/openmetrics-text" if self.is("version", "1.0.0") => Some(Format::OpenMetrics),
            "text/plain" if self.is("version", "0.0.4") => Some(Format::Plain),
            "text/*" | "*/*" => Some(Format::Plain),
            _ => None,
        }
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
