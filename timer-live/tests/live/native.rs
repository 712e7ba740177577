//! Native histograms, read back from the answer in protobuf.

use crate::support::{IN_TIME, LATE, known};
use prost::Message;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use timer_core::Timer;
use timer_live::{LivePage, Request};
use timer_metrics::prometheus_client::encoding::prometheus_protobuf::encode_to_vec;
use timer_metrics::prometheus_client::encoding::prometheus_protobuf::prometheus_data_model::{
    Histogram, MetricFamily, MetricType,
};
use timer_metrics::prometheus_client::registry::Registry;
use timer_metrics::{LAG_BUCKETS, TimerMetrics};

const CONTENT_TYPE: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Returns the families of a scrape of a server, which must be those of a site.
fn scrape(metrics: &TimerMetrics) -> Vec<MetricFamily> {
    let server = LivePage::new(metrics).serve(0).unwrap();
    let mut stream = TcpStream::connect(server.local_addr()).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {CONTENT_TYPE}\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let head = reply.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
    let body = reply.split_off(head);
    assert!(String::from_utf8(reply).unwrap().contains(&format!("\r\nContent-Type: {CONTENT_TYPE}\r\n")));

    let request = Request::new("GET", "/metrics").header("Accept", CONTENT_TYPE);
    let own = LivePage::new(metrics).site().unwrap().respond_to(&request);
    assert_eq!(own.into_bytes(), body);
    decode(&body)
}

fn decode(mut rest: &[u8]) -> Vec<MetricFamily> {
    let next = || (!rest.is_empty()).then(|| MetricFamily::decode_length_delimited(&mut rest).unwrap());
    std::iter::from_fn(next).collect()
}

fn family<'a>(families: &'a [MetricFamily], name: &str) -> &'a MetricFamily {
    families.iter().find(|family| family.name == name).unwrap()
}

/// Returns the lower and upper bound and the count of each bucket, as Prometheus computes them.
fn buckets(histogram: &Histogram) -> Vec<(f64, f64, i64)> {
    let base = 2_f64.powf(2_f64.powi(-histogram.schema));
    let mut index = 0;
    let mut count = 0;
    let mut deltas = histogram.positive_delta.iter();
    let mut buckets = Vec::new();
    for span in &histogram.positive_span {
        index += span.offset;
        for _ in 0..span.length {
            count += deltas.next().unwrap();
            buckets.push((base.powi(index - 1), base.powi(index), count));
            index += 1;
        }
    }
    assert_eq!(deltas.next(), None);
    buckets
}

#[test]
fn lags_are_native_histograms_in_protobuf() {
    let (timer, _driver) = known(Timer::builder().name("rpc"));
    let families = scrape(&TimerMetrics::from_iter([&timer]));
    let scheduled = &family(&families, "timer_timeouts_scheduled_total").metric[0];
    assert_eq!(scheduled.counter.as_ref().unwrap().value, 10.0);
    assert_eq!((scheduled.label[0].name.as_str(), scheduled.label[0].value.as_str()), ("timer", "rpc"));
    for name in ["timer_timeout_lag_seconds", "timer_start_lag_seconds", "timer_tick_lag_seconds"] {
        let family = family(&families, name);
        assert_eq!(family.r#type, MetricType::Histogram as i32, "{name}");
        let histogram = family.metric[0].histogram.as_ref().unwrap();
        assert_eq!(histogram.bucket.len(), LAG_BUCKETS.len() + 1, "the classic buckets of {name}");
        assert!(histogram.zero_threshold > 0.0, "{name} would not be native without a value");
        let sum: i64 = buckets(histogram).iter().map(|bucket| bucket.2).sum();
        assert_eq!(histogram.zero_count + sum as u64, histogram.sample_count, "{name}");
    }
    let lag = family(&families, "timer_timeout_lag_seconds").metric[0].histogram.as_ref().unwrap();
    assert_eq!(lag.zero_count, IN_TIME);
    let buckets = buckets(lag);
    assert_eq!(buckets.len(), LATE.len());
    for ((lower, upper, count), late) in buckets.into_iter().zip(LATE) {
        assert!(lower < late.as_secs_f64() && late.as_secs_f64() <= upper, "{lower} {late:?} {upper}");
        assert_eq!(count, 1);
    }
}

#[test]
fn native_buckets_have_the_lags_between_their_bounds() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    driver.advance(Duration::from_secs(3_600));
    let lags: Vec<Duration> = (1..=200).map(|step| step * Duration::from_micros(100)).collect();
    for lag in &lags {
        timer.new_timeout_at(driver.now() - *lag, |_| {}).unwrap();
    }
    driver.advance(Duration::ZERO);
    let families = scrape(&TimerMetrics::from_iter([&timer]));
    let lag = family(&families, "timer_timeout_lag_seconds").metric[0].histogram.as_ref().unwrap();
    let buckets = buckets(lag);
    assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].0 * 1.000_001));
    assert_eq!(buckets.iter().map(|bucket| bucket.2).sum::<i64>(), 200);
    for (lower, upper, count) in buckets {
        // A lag is known to 1 %, so one near a bound may be in the next bucket.
        let within =
            |low: f64, high: f64| lags.iter().filter(|lag| (low..=high).contains(&lag.as_secs_f64())).count() as i64;
        let least = within(lower * 1.001, upper / 1.011);
        let most = within(lower / 1.011, upper * 1.001);
        assert!((least..=most).contains(&count), "{least} to {most} in {lower} to {upper}: {count}");
    }
}

#[cfg(feature = "durable")]
#[test]
fn durable_timers_have_native_histograms() {
    use timer_durable::{BOUNDS, Due, DurableTimer, MemoryStore, Topic};

    const CLOSE: Topic<()> = Topic::new("close");
    let store = MemoryStore::new();
    let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<()>| Ok(()));
    let (timer, mut driver) = builder.build_manual(store.clone()).unwrap();
    let late = [70, 30, 9].map(Duration::from_millis);
    late.iter().for_each(|late| _ = timer.new_timeout(CLOSE, Duration::from_secs(1) - *late, &()).wait().unwrap());
    store.advance_clock(Duration::from_secs(1));
    driver.run_due();
    let metrics = timer_metrics::DurableMetrics::new();
    let mut registry = Registry::default();
    metrics.watch(&timer);
    metrics.register(&mut registry);
    let families = decode(&encode_to_vec(&registry).unwrap());
    for name in ["durable_lag_seconds", "durable_topic_lag_seconds"] {
        let lag = family(&families, name).metric[0].histogram.as_ref().unwrap();
        assert_eq!((lag.bucket.len(), lag.sample_count), (BOUNDS.len() + 1, 3), "the classic buckets of {name}");
        let buckets = buckets(lag);
        assert_eq!(buckets.len(), late.len(), "{name}");
        for ((lower, upper, count), late) in buckets.into_iter().zip(late.iter().rev()) {
            assert!(lower < late.as_secs_f64() && late.as_secs_f64() <= upper, "{lower} {late:?} {upper}");
            assert_eq!(count, 1);
        }
    }
    let commits = family(&families, "durable_commit_seconds").metric[0].histogram.as_ref().unwrap();
    let sum: i64 = buckets(commits).iter().map(|bucket| bucket.2).sum();
    assert_eq!(commits.zero_count + sum as u64, timer.stats().commits);
}
