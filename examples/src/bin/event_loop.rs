//! The timer inside an event loop of one's own: no worker thread, the loop turns it.
//!
//! The loop waits for a message, but no longer than until the next timeout; then it lets the timer
//! run what is due, on the loop's own thread. What the loop schedules itself needs no wake-up, since
//! it turns before it waits again. When another thread schedules something that is due earlier than
//! the loop would wake up, the waker sends it a message.
#![forbid(unsafe_code)]

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use timer_core::{Timeout, Timer};

enum Message {
    Remind { after: Duration, of: &'static str },
    Reminder(&'static str),
    Wake,
}

fn reminder(of: &'static str, to: &Sender<Message>) -> impl FnOnce(&Timeout) + Send + use<> {
    let to = to.clone();
    // A loop that has ended needs no reminders: here and below.
    move |_| _ = to.send(Message::Reminder(of))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (timer, mut driver) = Timer::builder().name("event-loop").build_driven()?;
    let (sender, inbox) = mpsc::channel();
    let wake = sender.clone();
    driver.set_waker(move || _ = wake.send(Message::Wake));

    let (remote, orders) = (timer.clone(), sender.clone());
    let customer = thread::spawn(move || {
        for (millis, of) in [(40, "bread"), (10, "milk")] {
            _ = orders.send(Message::Remind { after: Duration::from_millis(millis), of });
        }
        for (millis, of) in [(20, "eggs"), (0, "keys")] {
            _ = remote.new_timeout(Duration::from_millis(millis), reminder(of, &orders));
        }
    });

    let start = Instant::now();
    let (mut missing, mut turns, mut expired) = (4, 0, 0);
    while missing > 0 {
        let turn = driver.turn();
        turns += 1;
        expired += turn.expired;
        let message = match turn.next {
            Some(next) => inbox.recv_timeout(next.saturating_duration_since(Instant::now())),
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match message {
            Ok(Message::Remind { after, of }) => drop(timer.new_timeout(after, reminder(of, &sender))?),
            Ok(Message::Reminder(of)) => {
                println!("{:3} ms  do not forget the {of}", start.elapsed().as_millis());
                missing -= 1;
            }
            Ok(Message::Wake) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    _ = customer.join();
    println!("{expired} timeouts ran in {turns} turns of the loop, pending: {}", timer.pending_timeouts());
    Ok(())
}
