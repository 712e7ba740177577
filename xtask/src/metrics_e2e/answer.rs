//! What Prometheus answers to a query, as far as it is needed: each series with its labels and its value.

/// One series of an instant query.
#[derive(Debug, PartialEq)]
pub(super) struct Sample {
    labels: String,
    pub(super) value: f64,
}

impl Sample {
    /// A label's value. Ours need no escapes.
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.labels.split_once(&format!("\"{name}\":\""))?;
        rest.split('"').next()
    }
}

/// The samples of an answer; `None` if it is not one that succeeded.
pub(super) fn parse(json: &str) -> Option<Vec<Sample>> {
    let (_, result) = json.split_once("\"status\":\"success\"")?.1.split_once("\"result\":[")?;
    result.split("\"metric\":{").skip(1).map(sample).collect()
}

fn sample(json: &str) -> Option<Sample> {
    let (labels, rest) = json.split_once('}')?;
    // [time, "value"]
    let (_, value) = rest.split_once("\"value\":[")?.1.split_once(",\"")?;
    let value = value.split('"').next()?.parse().ok()?;
    Some(Sample { labels: labels.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn samples_have_labels_and_values() {
        let json = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"__name__":"a_bucket","le":"0.001","timer":"sessions"},"value":[1700000000.123,"17"]},
            {"metric":{"le":"+Inf"},"value":[1700000000.123,"+Inf"]}]}}"#;
        let samples = parse(json).unwrap();
        assert_eq!(samples.len(), 2);
        assert_eq!((samples[0].label("le"), samples[0].label("job"), samples[0].value), (Some("0.001"), None, 17.0));
        assert_eq!((samples[1].label("le"), samples[1].value), (Some("+Inf"), f64::INFINITY));
    }

    #[test]
    fn an_empty_result_is_one_and_an_error_is_none() {
        assert_eq!(parse(r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#), Some(vec![]));
        assert_eq!(parse(r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#), None);
        assert_eq!(parse("Service Unavailable"), None);
    }
}
