//! Hosts in turmoil, and tokio's paused clock.
#![cfg(not(any(loom, madsim, miri)))]

use std::sync::mpsc;
use std::time::Duration;

use timer_core::{ManualDriver, Timer, time};
use timer_durable::{Due, DurableTimer, MemoryStore, Topic, VirtualClock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use turmoil::net::{TcpListener, TcpStream};

/// Runs a simulation. The time of the driver's timer follows it.
fn run(mut sim: turmoil::Sim<'_>, mut driver: ManualDriver) {
    while !sim.step().unwrap() {
        driver.advance(sim.elapsed() - driver.elapsed());
    }
}

/// A server that answers after 300 ms of its own time.
async fn serve() -> turmoil::Result {
    let listener = TcpListener::bind("0.0.0.0:80").await?;
    loop {
        let mut stream = listener.accept().await?.0;
        time::sleep(Duration::from_millis(300)).await;
        stream.write_all(b"late").await?;
    }
}

#[test]
fn hosts_of_turmoil_share_a_manual_timer() {
    let (timer, driver) = Timer::builder().build_manual().unwrap();
    let _entered = time::enter(timer);
    let mut sim = turmoil::Builder::new().simulation_duration(Duration::from_secs(60)).build();
    sim.host("server", serve);
    sim.client("client", async {
        let begin = tokio::time::Instant::now();
        let mut stream = TcpStream::connect("server:80").await?;
        let mut answer = [0; 4];
        let read = time::timeout(Duration::from_millis(100), stream.read_exact(&mut answer));
        assert!(read.await.is_err(), "the server answers later");
        time::sleep(Duration::from_secs(5)).await;
        let took = begin.elapsed();
        assert!(took >= Duration::from_millis(5_100) && took < Duration::from_millis(5_400), "{took:?}");
        Ok(())
    });
    run(sim, driver);
}

#[test]
fn a_durable_timer_follows_turmoil() {
    const CLOSE: Topic<String> = Topic::new("order.close");
    let (timer, driver) = Timer::builder().build_manual().unwrap();
    let clock = VirtualClock::new(&timer);
    let _entered = time::enter(timer);
    let (closed, orders) = mpsc::channel();
    let builder = DurableTimer::builder().topic(CLOSE, move |due: &Due<String>| {
        _ = closed.send(due.payload().clone());
        Ok(())
    });
    let durable = builder.open_on(MemoryStore::new(), &clock).unwrap();
    let mut sim = turmoil::Builder::new().simulation_duration(Duration::from_secs(60)).build();
    sim.client("client", async move {
        durable.new_timeout(CLOSE, Duration::from_secs(5), "17").await?;
        time::sleep(Duration::from_millis(4_990)).await;
        assert!(orders.try_recv().is_err());
        time::sleep(Duration::from_millis(20)).await;
        assert_eq!(orders.try_recv()?, "17");
        Ok(())
    });
    run(sim, driver);
}

/// The clock that `#[tokio::test(start_paused = true)]` has as well.
#[test]
fn tokios_paused_clock_moves_both_timers() {
    timer_adapters::tokio::paused(async {
        let begin = tokio::time::Instant::now();
        time::sleep(Duration::from_secs(3_600)).await;
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(begin.elapsed(), Duration::from_secs(7_200));
    });
}
