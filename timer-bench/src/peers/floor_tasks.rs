//! The floor for tasks, which shows the cost of the runtime without a timer.
//!
//! A limit does nothing, and a sleep of more than 20 s never ends. Shorter sleeps leave their
//! wakers in one list per millisecond, and a plain thread wakes a list when its millisecond is
//! over. Nothing can be cancelled or moved.

use super::FLOOR;
use super::tasks;
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

const LONGEST: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub(super) struct Tasks {
    lists: Arc<Lists>,
}

struct Lists {
    begin: Instant,
    waiting: Mutex<WakerLists>,
}

#[derive(Default)]
struct WakerLists {
    /// The lists of wakers, by milliseconds since the beginning.
    wakers: Vec<Vec<Waker>>,
    /// The number of lists whose millisecond is over.
    over: usize,
}

impl Lists {
    /// Wakes due tasks until all other handles are gone.
    fn serve(self: &Arc<Self>) {
        while Arc::strong_count(self) > 1 {
            let now = self.begin.elapsed().as_millis() as usize;
            // The lock is released before the wakers run.
            let next_list = || self.waiting.lock().next_list(now);
            while let Some(due) = next_list() {
                due.into_iter().for_each(Waker::wake);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl WakerLists {
    /// Returns the next list whose millisecond is over at `now`.
    fn next_list(&mut self, now: usize) -> Option<Vec<Waker>> {
        let at = self.over;
        (at < now).then(|| {
            self.over += 1;
            self.wakers.get_mut(at).map(std::mem::take).unwrap_or_default()
        })
    }

    /// Adds a waker. Returns `false` if that millisecond is over.
    fn add(&mut self, due: usize, waker: &Waker) -> bool {
        if due >= self.over {
            self.wakers.resize_with(self.wakers.len().max(due + 1), Vec::new);
            self.wakers[due].push(waker.clone());
        }
        due >= self.over
    }
}

/// A sleep that is ready once it was woken.
pub(super) struct Sleep {
    lists: Arc<Lists>,
    /// The millisecond at which the sleep ends, or `None` after the first poll and for a sleep that
    /// never ends.
    due: Option<usize>,
    ends: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.due.take() {
            Some(due) if self.lists.waiting.lock().add(due, context.waker()) => Poll::Pending,
            None if !self.ends => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

impl tasks::Tasks for Tasks {
    const NAME: &'static str = FLOOR;
    type Sleep = Sleep;

    fn build() -> Self {
        let lists = Arc::new(Lists { begin: Instant::now(), waiting: Mutex::default() });
        let served = lists.clone();
        thread::spawn(move || served.serve());
        Self { lists }
    }

    fn sleep(&self, delay: Duration) -> Sleep {
        let ends = delay <= LONGEST;
        let due = ends.then(|| (self.lists.begin.elapsed() + delay).as_millis() as usize);
        Sleep { lists: self.lists.clone(), due, ends }
    }

    fn reset(_: Pin<&mut Sleep>, _: Duration) {}

    async fn is_in_time<F: Future + Send>(&self, _: Duration, future: F) -> bool {
        future.await;
        true
    }
}
