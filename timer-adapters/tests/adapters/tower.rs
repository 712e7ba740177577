//! The tower layers alone on virtual time, and under axum on sockets.

use super::runtime;
use ::tower::retry::backoff::{Backoff, MakeBackoff};
use ::tower::{Layer, ServiceExt, service_fn};
use axum::Router;
use axum::body::Body;
use axum::body::HttpBody;
use axum::error_handling::HandleErrorLayer;
use axum::http::{Request, Response, StatusCode};
use axum::routing::get;
use http_body_util::BodyExt;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;
use timer_adapters::tower::{BoxError, ExponentialBackoffMaker, ResponseBodyTimeoutLayer, TimeoutBody, TimeoutLayer};
use timer_core::time::error::Elapsed;
use timer_core::{ManualDriver, Timer};

const SECOND: Duration = Duration::from_secs(1);

fn manual() -> (Timer, ManualDriver) {
    let (timer, driver) = Timer::builder().build_manual().unwrap();
    (timer, driver)
}

#[test]
fn a_slow_service_elapses_and_a_fast_one_does_not() {
    let (timer, mut driver) = manual();
    let layer = TimeoutLayer::new(timer.clone(), 5 * SECOND);
    for (takes, is_ok) in [(4 * SECOND, true), (6 * SECOND, false)] {
        let inner = timer.clone();
        let service = layer.layer(service_fn(move |_: ()| {
            let sleep = inner.sleep(takes);
            async move {
                sleep.await;
                Ok::<_, Infallible>("done")
            }
        }));
        let before = driver.elapsed();
        let reply: Result<_, BoxError> = driver.block_on(service.oneshot(()));
        assert_eq!(reply.is_ok(), is_ok);
        assert!(is_ok || reply.unwrap_err().is::<Elapsed>());
        assert_eq!(driver.elapsed() - before, takes.min(5 * SECOND));
    }
}

#[test]
fn the_error_of_the_service_passes_through() {
    let (timer, mut driver) = manual();
    let service = service_fn(|(): ()| async { Err::<(), _>(std::io::Error::other("broken")) });
    let reply = driver.block_on(TimeoutLayer::new(timer, SECOND).layer(service).oneshot(()));
    assert_eq!(reply.unwrap_err().to_string(), "broken");
}

/// A body whose frames come after these delays.
fn frames(timer: &Timer, delays: Vec<Duration>) -> Body {
    let timer = timer.clone();
    Body::from_stream(futures::stream::unfold(delays.into_iter(), move |mut delays| {
        let sleep = delays.next().map(|delay| timer.sleep(delay));
        async move {
            sleep?.await;
            Some((Ok::<_, Infallible>("frame"), delays))
        }
    }))
}

#[test]
fn each_frame_of_a_body_has_its_own_deadline() {
    let (timer, mut driver) = manual();
    let body = TimeoutBody::new(frames(&timer, vec![4 * SECOND; 5]), &timer, 5 * SECOND);
    assert_eq!(driver.block_on(body.collect()).unwrap().to_bytes().len(), 25);
    assert_eq!(driver.elapsed(), 20 * SECOND);
    let mut body = TimeoutBody::new(frames(&timer, vec![SECOND, 6 * SECOND]), &timer, 5 * SECOND);
    assert!(driver.block_on(body.frame()).unwrap().is_ok());
    driver.advance(60 * SECOND);
    let error = driver.block_on(body.frame()).unwrap().unwrap_err();
    assert!(error.is::<Elapsed>());
    assert_eq!(driver.elapsed(), (20 + 1 + 60 + 5) * SECOND, "a body that nothing reads has time");
}

#[test]
fn a_body_that_trickles_has_a_deadline() {
    let (timer, mut driver) = manual();
    let layer = ResponseBodyTimeoutLayer::for_whole_body(timer.clone(), 5 * SECOND);
    // Frames that are ready at once do not outrun the deadline, and a body that ends in time is
    // complete.
    for (delay, after, frames_in_time) in [(SECOND, 0, 4), (Duration::ZERO, 5, 0), (SECOND / 2, 0, 8)] {
        let inner = frames(&timer, vec![delay; 8]);
        let inner = std::sync::Mutex::new(Some(inner));
        let service = layer.layer(service_fn(|_: ()| {
            let body = inner.lock().unwrap().take().unwrap();
            async move { Ok::<_, Infallible>(Response::new(body)) }
        }));
        let mut body = driver.block_on(service.oneshot(())).unwrap().into_body();
        let begin = driver.elapsed();
        driver.advance(after * SECOND);
        for _ in 0..frames_in_time {
            assert!(driver.block_on(body.frame()).unwrap().is_ok());
        }
        let last = driver.block_on(body.frame());
        let is_late = frames_in_time < 8;
        assert_eq!(last.map(|frame| frame.unwrap_err().is::<Elapsed>()), is_late.then_some(true));
        assert_eq!(driver.elapsed() - begin, if is_late { 5 * SECOND } else { 4 * SECOND });
    }
}

#[test]
fn a_body_that_has_failed_yields_no_frame() {
    let (timer, mut driver) = manual();
    let late = frames(&timer, vec![2 * SECOND, Duration::ZERO]);
    let broken = futures::stream::iter([Err(std::io::Error::other("broken")), Ok("frame")]);
    for inner in [late, Body::from_stream(broken)] {
        let mut body = TimeoutBody::new(inner, &timer, SECOND);
        assert!(driver.block_on(body.frame()).unwrap().is_err() && body.is_end_stream());
        driver.advance(2 * SECOND);
        assert!(driver.block_on(body.frame()).is_none());
        assert_eq!(body.size_hint().exact(), Some(0));
    }
}

#[test]
fn clients_do_not_meet_at_the_longest_wait() {
    const CLIENTS: usize = 1_000;
    let (timer, _driver) = manual();
    for (min, jitter) in [(5 * SECOND, 0.5), (4 * SECOND, 0.5), (SECOND, 9.0)] {
        let mut maker = ExponentialBackoffMaker::new(timer.clone(), min, 5 * SECOND, jitter);
        let waits = (0..CLIENTS).map(|_| maker.make_backoff().next_backoff().deadline() - timer.now());
        let waits: std::collections::BTreeSet<Duration> = waits.collect();
        assert_eq!(waits.len(), CLIENTS, "waits are equal");
        let shortest = 5 * SECOND.div_f64(1.0 + jitter);
        assert!(waits.iter().all(|wait| (shortest..=5 * SECOND).contains(wait)), "{:?}", waits.last());
    }
    let mut backoff = ExponentialBackoffMaker::new(timer.clone(), Duration::ZERO, SECOND, 0.0).make_backoff();
    let waits = [(); 3].map(|()| (backoff.next_backoff().deadline() - timer.now()).as_millis());
    assert_eq!(waits, [1, 2, 4], "a wait of zero would never double");
}

#[test]
fn backoffs_double_up_to_their_limit() {
    let (timer, mut driver) = manual();
    let waits = |jitter: f64, driver: &mut ManualDriver| {
        let mut maker = ExponentialBackoffMaker::new(timer.clone(), SECOND, 10 * SECOND, jitter);
        let mut backoff = maker.make_backoff();
        [(); 6].map(|()| {
            let before = driver.elapsed();
            driver.block_on(backoff.next_backoff());
            driver.elapsed() - before
        })
    };
    for jitter in [0.0, -1.0, f64::NAN] {
        assert_eq!(waits(jitter, &mut driver), [1, 2, 4, 8, 10, 10].map(|seconds| seconds * SECOND));
    }
    let jittered = waits(0.5, &mut driver);
    for (wait, base) in jittered.iter().zip([1, 2, 4, 8, 10, 10]) {
        let longest = (base * SECOND * 3 / 2).min(10 * SECOND);
        assert!((longest.mul_f64(0.66)..=longest).contains(wait), "{wait:?}");
    }
    assert_ne!(jittered, waits(0.5, &mut driver));
}

#[test]
fn the_layers_work_under_axum() {
    let timer = Timer::new();
    let limit = Duration::from_millis(20);
    let stuck = frames(&timer, vec![Duration::ZERO, Duration::from_secs(3600)]);
    let stuck = std::sync::Mutex::new(Some(stuck));
    let stuck = std::sync::Arc::new(stuck);
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/slow", get(|| async { pending::<&str>().await }))
        .route("/body", get(move || async move { Response::new(stuck.lock().unwrap().take().unwrap()) }))
        .layer(ResponseBodyTimeoutLayer::new(timer.clone(), limit))
        .layer(
            ::tower::ServiceBuilder::new()
                .layer(HandleErrorLayer::new(|error: BoxError| async move {
                    if error.is::<Elapsed>() { StatusCode::REQUEST_TIMEOUT } else { StatusCode::BAD_GATEWAY }
                }))
                .layer(TimeoutLayer::new(timer.clone(), limit)),
        );
    runtime().block_on(async {
        for (path, status) in [("/", StatusCode::OK), ("/slow", StatusCode::REQUEST_TIMEOUT), ("/body", StatusCode::OK)]
        {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let reply = app.clone().oneshot(request).await.unwrap();
            assert_eq!(reply.status(), status, "{path}");
            let body = reply.into_body().collect().await;
            assert_eq!(body.is_err(), path == "/body");
        }
    });
    assert_eq!(timer.pending_timeouts(), 0);
}
