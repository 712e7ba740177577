//! The executors under test, and work that says what became of it. A panic in a task is caught,
//! also that of an assertion: a task tells what it saw, the test judges.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use timer_executor::{ImmediateExecutor, Task, TaskExecutor};

/// Reached only by a test that fails.
pub(crate) const NEVER: Duration = Duration::from_secs(60);

pub(crate) type Shared = Arc<dyn TaskExecutor>;

/// Every pool, with so many threads, and without a bound that matters.
pub(crate) fn pools(threads: usize) -> Vec<(&'static str, Shared)> {
    let _ = threads;
    vec![
        #[cfg(feature = "rayon")]
        ("rayon", Arc::new(rayon(threads))),
        #[cfg(feature = "threadpool")]
        ("threadpool", Arc::new(timer_executor::ThreadPoolExecutor::new(threads))),
        #[cfg(feature = "threadpool")]
        ("bounded threadpool", Arc::new(timer_executor::ThreadPoolExecutor::bounded(threads, 100_000))),
    ]
}

#[cfg(feature = "rayon")]
pub(crate) fn rayon(threads: usize) -> timer_executor::RayonExecutor {
    timer_executor::RayonExecutor::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap())
}

/// The pools and everything else that is an executor, also such as reject much.
pub(crate) fn executors() -> Vec<(&'static str, Shared)> {
    let mut all = pools(2);
    all.push(("immediate", Arc::new(ImmediateExecutor)));
    all.push(("closure", Arc::new(Task::run)));
    all.push(("arc", Arc::new(Arc::new(ImmediateExecutor))));
    all.push(("box", Arc::new(Box::new(ImmediateExecutor) as Box<dyn TaskExecutor>)));
    #[cfg(feature = "rayon")]
    all.push(("rayon global", Arc::new(timer_executor::RayonExecutor::global())));
    #[cfg(feature = "threadpool")]
    all.push(("narrow threadpool", Arc::new(timer_executor::ThreadPoolExecutor::bounded(2, 5))));
    all
}

/// `n` tasks that send their number when they run; the receiver ends when all tasks are gone.
pub(crate) fn numbered(n: usize) -> (Vec<Task>, Receiver<usize>) {
    let (sender, receiver) = channel();
    (tasks(0..n, &sender), receiver)
}

pub(crate) fn tasks(numbers: impl IntoIterator<Item = usize>, sender: &Sender<usize>) -> Vec<Task> {
    let task = |i| {
        let sender = sender.clone();
        Task::new(move || sender.send(i).unwrap())
    };
    numbers.into_iter().map(task).collect()
}

/// Runs what an executor did not take, and collects the numbers of these tasks.
pub(crate) fn run_here(tasks: Vec<Task>, receiver: &Receiver<usize>) -> Vec<usize> {
    tasks.into_iter().for_each(Task::run);
    receiver.try_iter().collect()
}

/// Waits until all tasks are gone, and says which of them ran.
pub(crate) fn in_order(receiver: Receiver<usize>) -> Vec<usize> {
    let mut numbers = Vec::new();
    loop {
        match receiver.recv_timeout(NEVER) {
            Ok(number) => numbers.push(number),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("tasks are stuck; {} ran", numbers.len()),
        }
    }
    numbers.sort_unstable();
    numbers
}

/// A task that signals that it runs, then keeps its thread until the gate opens.
pub(crate) fn blocker() -> (Task, Receiver<()>, Sender<()>) {
    let (running, is_running) = channel();
    let (open, gate) = channel::<()>();
    let task = Task::new(move || {
        running.send(()).unwrap();
        let _ = gate.recv();
    });
    (task, is_running, open)
}

/// Work behind a waker, that writes down what became of its tasks: "run" or "abandoned".
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) calls: Mutex<Vec<&'static str>>,
    pub(crate) panics: bool,
}

impl Recorder {
    pub(crate) fn task(self: &Arc<Self>) -> Task {
        let watched = Watched { recorder: Arc::clone(self), woken: Mutex::default() };
        Task::from_waker(Waker::from(Arc::new(watched)))
    }

    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn record(&self, call: &'static str) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        if self.panics {
            panic!("{call} panics");
        }
    }
}

/// The only reference is the task's: its drop is the end of the task.
struct Watched {
    recorder: Arc<Recorder>,
    woken: Mutex<bool>,
}

impl Wake for Watched {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap() = true;
        self.recorder.record("run");
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !*self.woken.get_mut().unwrap() {
            self.recorder.record("abandoned");
        }
    }
}
