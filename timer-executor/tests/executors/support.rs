//! The executors under test, and tasks that record their outcome. A task catches the panic of an
//! assertion, so tasks report to the test, and the test asserts.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use timer_executor::{ImmediateExecutor, Task, TaskExecutor};

/// A limit that only a failing test reaches.
pub(crate) const NEVER: Duration = Duration::from_secs(60);

pub(crate) type Shared = Arc<dyn TaskExecutor>;

/// Every pool with `threads` threads, without a bound or with one that no test reaches.
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

/// The pools and all other executors, including one that rejects many tasks.
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

/// Returns `n` tasks that send their number when they run. The channel closes when all tasks are
/// gone.
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

/// Runs the tasks that an executor left, and returns their numbers.
pub(crate) fn run_here(tasks: Vec<Task>, receiver: &Receiver<usize>) -> Vec<usize> {
    tasks.into_iter().for_each(Task::run);
    receiver.try_iter().collect()
}

/// Waits until all tasks are gone, and returns the sorted numbers of the tasks that ran.
pub(crate) fn sorted_numbers(receiver: Receiver<usize>) -> Vec<usize> {
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

/// Returns a task that signals its start and then keeps its thread until the gate opens.
pub(crate) fn blocker() -> (Task, Receiver<()>, Sender<()>) {
    let (running, is_running) = channel();
    let (open, gate) = channel::<()>();
    let task = Task::new(move || {
        running.send(()).unwrap();
        let _ = gate.recv();
    });
    (task, is_running, open)
}

/// Work behind wakers, which records the end of each task: "run" or "abandoned".
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

/// A waker whose only reference is the task's, so its drop is the end of the task.
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
