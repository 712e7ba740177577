//! A client that gives every request a deadline, and cancels it when the reply comes.
//!
//! This is what most timeouts live like: nearly all are cancelled long before they are due. A reply
//! and its deadline may come together; `cancel` is `true` for exactly one side of that race, so
//! every request is counted once: as answered, or as timed out. The server here is a thread that
//! loses every tenth request and answers the others at once.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use timer_core::{Timeout, Timer};

const REQUESTS: u64 = 100_000;
const DEADLINE: Duration = Duration::from_millis(250);

enum Event {
    Reply(u64),
    DeadlineExceeded(u64),
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timer = Timer::new();
    let (events, inbox) = mpsc::channel();
    let (server, requests) = mpsc::channel::<u64>();
    let replies = events.clone();
    let serve = std::thread::spawn(move || {
        for request in requests.iter().filter(|request| request % 10 != 0) {
            if replies.send(Event::Reply(request)).is_err() {
                break;
            }
        }
    });

    let start = Instant::now();
    let mut waiting: HashMap<u64, Timeout> = HashMap::new();
    let (mut answered, mut too_late, mut timed_out) = (0_u64, 0_u64, 0_u64);
    let mut on_event = |event, waiting: &mut HashMap<u64, Timeout>| match event {
        Event::Reply(request) => match waiting.remove(&request) {
            Some(deadline) if deadline.cancel() => answered += 1,
            // The deadline won: its event has come, or is about to.
            _ => too_late += 1,
        },
        Event::DeadlineExceeded(request) => {
            waiting.remove(&request);
            timed_out += 1;
        }
    };
    for request in 1..=REQUESTS {
        let exceeded = events.clone();
        let task = move |_: &Timeout| _ = exceeded.send(Event::DeadlineExceeded(request));
        waiting.insert(request, timer.new_timeout(DEADLINE, task)?);
        server.send(request)?;
        while let Ok(event) = inbox.try_recv() {
            on_event(event, &mut waiting);
        }
    }
    drop((server, events));
    // Every sender that is left belongs to the server or to a deadline: the inbox closes when all
    // have ended.
    for event in inbox {
        on_event(event, &mut waiting);
    }

    println!("{REQUESTS} requests with a deadline of {DEADLINE:?}, in {:.0?}", start.elapsed());
    println!("{answered:>8} answered in time, their deadlines cancelled");
    println!("{timed_out:>8} timed out, of which {too_late} were answered too late");
    println!("{:>8} ended twice or never", REQUESTS.abs_diff(answered + timed_out));
    println!("{:>8} deadlines pending", timer.pending_timeouts());
    drop(serve.join());
    Ok(())
}
