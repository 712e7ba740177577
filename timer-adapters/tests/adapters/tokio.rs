//! tokio programs on virtual time.

use ::tokio::io::{AsyncReadExt, AsyncWriteExt};
use ::tokio::net::{TcpListener, TcpStream};
use ::tokio::task::{JoinSet, spawn, spawn_blocking, yield_now};
use std::time::{Duration, Instant};
use timer_adapters::tokio::{advance, pause, paused, resume};
use timer_core::time;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_thousand_tasks_sleep_through_hours() {
    let begin = Instant::now();
    let last = paused(async {
        let begin = time::now();
        let mut tasks = JoinSet::new();
        for id in 1..=1000 {
            tasks.spawn(async move {
                for _ in 0..10 {
                    time::sleep(id * SECOND).await;
                }
                time::now()
            });
        }
        tasks.join_all().await.into_iter().max().unwrap() - begin
    });
    assert_eq!(last, 10_000 * SECOND);
    assert!(begin.elapsed() < super::LONG);
}

#[test]
fn a_loop_of_short_sleeps_can_be_aborted() {
    use timer_adapters::tokio::time::{interval, sleep, timeout};

    let runtime = ::tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let sleeper = spawn(async {
            loop {
                sleep(Duration::from_nanos(1)).await;
            }
        });
        let ticker = spawn(async {
            let mut ticks = interval(Duration::from_nanos(1));
            loop {
                ticks.tick().await;
            }
        });
        let limited =
            spawn(async { while timeout(Duration::from_nanos(1), std::future::pending::<()>()).await.is_err() {} });
        yield_now().await;
        for task in [sleeper, ticker, limited] {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn tokio_and_the_manual_timer_tell_one_time() {
    paused(async {
        let begin = ::tokio::time::Instant::now();
        assert_eq!(begin.into_std(), time::now());
        let ours = spawn(async { time::sleep(3 * SECOND).await });
        let theirs = spawn(async { ::tokio::time::sleep(2 * SECOND).await });
        theirs.await.unwrap();
        assert_eq!((begin.elapsed(), time::now()), (2 * SECOND, (begin + 2 * SECOND).into_std()));
        ours.await.unwrap();
        assert_eq!((begin.elapsed(), time::now()), (3 * SECOND, (begin + 3 * SECOND).into_std()));
        time::sleep_until((begin + 4 * SECOND).into()).await;
        assert_eq!(begin.elapsed(), 4 * SECOND);
    });
}

#[test]
fn time_stands_still_while_a_task_can_run() {
    paused(async {
        let begin = time::now();
        let sleeper = spawn(time::sleep(SECOND));
        for _ in 0..1000 {
            yield_now().await;
        }
        assert!(!sleeper.is_finished());
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let blocking = spawn_blocking(move || receiver.recv_timeout(Duration::from_millis(20)));
        blocking.await.unwrap().unwrap_err();
        drop(sender);
        assert_eq!(time::now(), begin, "a blocking task keeps the time");
        sleeper.await.unwrap();
        assert_eq!(time::now() - begin, SECOND);
    });
}

#[test]
fn a_chain_of_sockets_does_not_move_time() {
    paused(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut byte = [0];
            while socket.read_exact(&mut byte).await.is_ok() {
                socket.write_all(&byte).await.unwrap();
            }
        });
        let begin = time::now();
        let echo = async {
            let mut socket = TcpStream::connect(address).await.unwrap();
            for _ in 0..200 {
                let mut byte = [7];
                socket.write_all(&byte).await.unwrap();
                socket.read_exact(&mut byte).await.unwrap();
            }
        };
        time::timeout(3600 * SECOND, echo).await.expect("time moved though a socket was ready");
        assert_eq!(time::now(), begin);
    });
}

#[test]
fn advance_stops_at_its_target() {
    paused(async {
        let begin = time::now();
        let mut ticks = time::interval(SECOND);
        ticks.tick().await;
        let counter = spawn(async move {
            let mut due = Vec::new();
            for _ in 0..3 {
                due.push(ticks.tick().await);
            }
            due
        });
        yield_now().await;
        advance(2500 * Duration::from_millis(1)).await;
        assert_eq!(time::now() - begin, 2500 * Duration::from_millis(1));
        assert!(!counter.is_finished());
        let due = counter.await.unwrap();
        assert_eq!(due, [1, 2, 3].map(|nth| begin + nth * SECOND));
    });
}

#[test]
fn a_resumed_clock_follows_the_real_one() {
    paused(async {
        resume();
        let real = Instant::now();
        let begin = time::now();
        time::sleep(Duration::from_millis(10)).await;
        assert!(real.elapsed() >= Duration::from_millis(10), "{:?}", real.elapsed());
        assert!(time::now() - begin >= Duration::from_millis(10));
        pause();
        let stopped = time::now();
        assert_eq!(::tokio::time::Instant::now().into_std(), stopped);
        std::hint::black_box((0..100_000).sum::<u64>());
        assert_eq!(time::now(), stopped);
        time::sleep(3600 * SECOND).await;
        assert!(time::now() - stopped >= 3600 * SECOND);
    });
}

#[test]
fn an_advance_in_a_task_moves_the_time_of_all() {
    use timer_adapters::tokio::time::{MissedTickBehavior, interval};

    const TEN: Duration = Duration::from_millis(10);
    paused(async {
        let mut ticks = interval(TEN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let begin = ticks.tick().await;
        let task = spawn(async { advance(4 * TEN).await });
        let other = spawn(async {
            let begin = time::now();
            assert_eq!(::tokio::time::Instant::now().into_std(), begin);
            time::sleep(5 * TEN).await;
            assert_eq!(time::now() - begin, 5 * TEN);
        });
        task.await.unwrap();
        other.await.unwrap();
        assert_eq!(ticks.tick().await - begin, TEN);
        assert_eq!(ticks.tick().await - begin, 10 * TEN);
    });
}

#[test]
fn cancelled_timeouts_do_not_move_time() {
    paused(async {
        let begin = time::now();
        let mut sleep = time::sleep(3600 * SECOND);
        assert!(futures::FutureExt::now_or_never(&mut sleep).is_none());
        drop(sleep);
        let (sender, receiver) = ::tokio::sync::oneshot::channel();
        let other = std::thread::spawn(move || sender.send(()));
        receiver.await.unwrap();
        other.join().unwrap().unwrap();
        assert_eq!(time::now(), begin);
    });
}

#[test]
fn paused_programs_nest_and_follow_each_other() {
    for _ in 0..3 {
        paused(async { time::sleep(SECOND).await });
    }
    let before = time::now();
    assert!(time::now() >= before && time::now() < before + 3600 * SECOND, "the thread is as it was");
}

#[test]
fn a_future_that_uses_up_the_budget_has_a_deadline() {
    use ::tokio::task::coop::poll_proceed;
    use timer_adapters::tokio::time::timeout;

    let runtime = ::tokio::runtime::Builder::new_current_thread().build().unwrap();
    let greedy = std::future::poll_fn(|cx| {
        while let std::task::Poll::Ready(unit) = poll_proceed(cx) {
            unit.made_progress();
        }
        std::task::Poll::<()>::Pending
    });
    runtime.block_on(async { timeout(Duration::ZERO, greedy).await.unwrap_err() });
}

/// A file of a program that changed its timer by one line.
mod ported {
    use timer_adapters::tokio;
    use tokio::time::{self, Duration, Instant, MissedTickBehavior};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn an_attribute_of_tokio_pauses_the_clock() {
        let begin = Instant::now();
        let task = tokio::spawn(time::sleep(3600 * SECOND));
        assert!(time::timeout(1800 * SECOND, std::future::pending::<()>()).await.is_err());
        assert_eq!(begin.elapsed(), 1800 * SECOND);
        task.await.unwrap();
        assert_eq!(begin.elapsed(), 3600 * SECOND);
        let mut ticks = time::interval_at(begin + 4000 * SECOND, SECOND);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        assert_eq!(ticks.tick().await, begin + 4000 * SECOND);
        let mut sleep = std::pin::pin!(time::sleep_until(begin));
        sleep.as_mut().reset(begin + 5000 * SECOND);
        sleep.await;
        assert_eq!(Instant::now(), begin + 5000 * SECOND);
    }

    #[tokio::test]
    async fn a_running_clock_can_be_paused() {
        let begin = Instant::now();
        time::sleep(Duration::from_millis(5)).await;
        assert!(begin.elapsed() >= Duration::from_millis(5) && begin.elapsed() < 3600 * SECOND);
        time::pause();
        let task = tokio::spawn(time::sleep(3600 * SECOND));
        tokio::task::yield_now().await;
        let paused = Instant::now();
        time::advance(3599 * SECOND).await;
        assert!(!task.is_finished());
        time::advance(SECOND).await;
        assert!(!task.is_finished(), "tokio rounds a deadline up to a whole millisecond of its clock");
        time::advance(Duration::from_millis(1)).await;
        assert!(task.is_finished());
        assert_eq!(paused.elapsed(), 3600 * SECOND + Duration::from_millis(1));
    }

    #[tokio::test]
    async fn a_delay_counts_from_the_present() {
        let busy = std::time::Instant::now();
        while busy.elapsed() < Duration::from_millis(20) {}
        let begin = Instant::now();
        time::sleep(Duration::from_millis(10)).await;
        assert!(begin.elapsed() >= Duration::from_millis(10));
        let begin = Instant::now();
        let _: Result<(), _> = time::timeout(Duration::from_millis(10), std::future::pending()).await;
        assert!(begin.elapsed() >= Duration::from_millis(10));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn several_threads_use_the_real_clock() {
        let begin = Instant::now();
        let tasks = [(); 4].map(|()| tokio::spawn(time::sleep(Duration::from_millis(5))));
        for task in tasks {
            task.await.unwrap();
        }
        assert!(begin.elapsed() >= Duration::from_millis(5));
    }
}

#[test]
fn a_runtime_without_time_runs_a_future() {
    let runtime = timer_adapters::tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(async { 7 }), 7);
}

#[test]
fn threads_share_a_runtime_and_its_virtual_time() {
    let runtime =
        timer_adapters::tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let hours = &|count: u32| {
        let sleeps = async move {
            let begin = time::now();
            for _ in 0..count {
                time::sleep(3600 * SECOND).await;
            }
            assert!(time::now() - begin >= count * 3600 * SECOND);
        };
        runtime.block_on(sleeps);
    };
    let begin = Instant::now();
    std::thread::scope(|scope| (1..=8).for_each(|count| _ = scope.spawn(move || hours(count * 50))));
    assert!(begin.elapsed() < super::LONG);
    runtime.shutdown_timeout(SECOND);
}

#[test]
fn a_sleep_that_begins_while_another_thread_moves_the_time_is_not_early() {
    use timer_adapters::tokio::{runtime::Builder, time::sleep};

    let runtime = &Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (moving, is_moving) = std::sync::mpsc::channel();
    let (asking, is_asking) = std::sync::mpsc::channel();
    let advancing = move || {
        runtime.block_on(async {
            let task = move |_: &timer_core::Timeout| {
                moving.send(()).unwrap();
                is_asking.recv().unwrap();
                // The other thread begins its sleep.
                std::thread::park_timeout(Duration::from_millis(20));
            };
            timer_core::Timer::current().new_timeout(SECOND, task).unwrap();
            // Within the task, tokio's clock has moved by 10 s and the manual timer by 1 s.
            advance(10 * SECOND).await;
        });
    };
    std::thread::scope(|scope| {
        scope.spawn(advancing);
        is_moving.recv().unwrap();
        runtime.block_on(async {
            let begin = ::tokio::time::Instant::now();
            asking.send(()).unwrap();
            sleep(5 * SECOND).await;
            assert!(begin.elapsed() >= 5 * SECOND, "{:?}", begin.elapsed());
        });
    });
}

#[test]
fn a_local_set_has_virtual_time_within_block_on() {
    use timer_adapters::tokio::{runtime::Builder, task::LocalSet, time::sleep};

    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let begin = Instant::now();
    runtime.block_on(LocalSet::new().run_until(async { sleep(3600 * SECOND).await }));
    assert!(begin.elapsed() < super::LONG);
}

#[test]
fn another_thread_may_wait_for_the_clock_of_a_runtime() {
    use timer_adapters::tokio::runtime::Builder;
    use timer_adapters::tokio::time::sleep;

    for is_paused in [true, false] {
        let (ended, has_ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().start_paused(is_paused).build().unwrap();
            runtime.block_on(async {
                let sleep = sleep(Duration::from_millis(50));
                let (woken, is_woken) = ::tokio::sync::oneshot::channel();
                std::thread::spawn(move || {
                    // The runtime has nothing to do by then.
                    std::thread::park_timeout(Duration::from_millis(20));
                    futures::executor::block_on(sleep);
                    woken.send(()).unwrap();
                });
                is_woken.await.unwrap();
            });
            ended.send(()).unwrap();
        });
        assert!(has_ended.recv_timeout(super::LONG).is_ok(), "the clock is paused: {is_paused}");
    }
}
