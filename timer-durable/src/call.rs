//! The answer to a call, which a thread waits for or a task awaits.

use crate::engine::is_keeper;
use crate::error::Error;
use crate::message::Reply;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// The number of times that a caller in a crowd yields its CPU before it sleeps. While many threads
/// call, the keeper spends most of its time on waking them, and a thread on a CPU that stays awake
/// is woken quickly. With few callers, yielding would only cost CPU time.
const YIELDS: usize = 32;

/// The answer to a call of a [`DurableTimer`](crate::DurableTimer), of its builder, or of a
/// [`Due`](crate::Due).
///
/// A call is sent when it is made. [`wait`](Self::wait) blocks the thread until the answer is
/// there, and `.await` does so with a task. To drop a `Call` takes nothing back, as to drop a
/// [`JoinHandle`](std::thread::JoinHandle) ends no thread. An argument that is not allowed is an
/// answer, too. The effect of a call is certain only after an answer of `Ok`.
///
/// The answer of a call costs an allocation and no thread. It can be moved to another thread, and
/// kept for later. If it is polled again after it was ready, it panics, as most futures do.
///
/// # Examples
///
/// Many calls share a commit if all are made before the first one is waited for:
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Call, Due, DurableTimer, Error, MemoryStore, TimeoutId, Topic};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(()));
/// let timer = builder.open(MemoryStore::new()).wait()?;
/// let half_an_hour = Duration::from_secs(1800);
/// let calls: Vec<Call<TimeoutId>> =
///     ["17", "18", "19"].iter().map(|order| timer.new_timeout(CLOSE, half_an_hour, *order)).collect();
/// for call in calls {
///     call.wait()?;
/// }
/// # Ok::<(), Error>(())
/// ```
#[must_use = "a call is sent already, but its effect is certain only after `wait()` or `.await`"]
pub struct Call<T> {
    state: State<T>,
    yields: usize,
}

enum State<T> {
    /// The answer, until it is taken.
    Ready(Option<Result<T, Error>>),
    Sent(Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>),
}

impl<T> Call<T> {
    /// Returns a call that has its answer.
    pub(crate) fn ready(answer: Result<T, Error>) -> Self {
        Self { state: State::Ready(Some(answer)), yields: 0 }
    }

    /// Returns the call, or one whose answer is the error.
    pub(crate) fn from_result(call: Result<Self, Error>) -> Self {
        call.unwrap_or_else(|error| Self::ready(Err(error)))
    }

    /// Returns a call whose answer is read from a channel by a function.
    pub(crate) fn sent<S: Send + 'static>(
        answer: oneshot::Receiver<Result<S, Error>>,
        read: impl FnOnce(Result<S, Error>) -> Result<T, Error> + Send + 'static,
    ) -> Self {
        let answer = async move { read(answer.await.unwrap_or(Err(Error::Stopped))) };
        Self { state: State::Sent(Box::pin(answer)), yields: 0 }
    }

    /// Notes whether many callers wait.
    pub(crate) fn in_crowd(mut self, is_crowded: bool) -> Self {
        self.yields = if is_crowded { YIELDS } else { 0 };
        self
    }

    /// Blocks the thread until the answer is there.
    ///
    /// On virtual time, most calls have their answer when they are made. One that waits for a lock
    /// or for a pause of the store has it after a later turn, which another thread has to cause.
    ///
    /// # Errors
    ///
    /// The errors of the call, and [`Error::OnKeeper`] on the keeper's own thread if the answer is
    /// not there yet. The call takes effect all the same.
    pub fn wait(mut self) -> Result<T, Error> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(answer) = Pin::new(&mut self).poll(&mut context) {
                return answer;
            }
            if is_keeper() {
                return Err(Error::OnKeeper);
            }
            if self.yields > 0 {
                self.yields -= 1;
                thread::yield_now();
            } else {
                thread::park();
            }
        }
    }
}

impl<T: Send + 'static> Call<T> {
    /// Runs a function that blocks on a thread of its own. The crates of stores make their calls of
    /// it, such as the installation of tables on a server.
    ///
    /// # Errors
    ///
    /// The error of the function. [`Error::ThreadRefused`] if the system refuses the thread, and
    /// [`Error::OutcomeUnknown`] if the function panics.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::Call;
    ///
    /// let call = Call::on_thread(|| Ok(std::thread::current().name().map(str::to_owned)));
    /// assert_eq!(call.wait()?.as_deref(), Some("timer-call"));
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    pub fn on_thread(function: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Self {
        let (reply, answer) = Reply::new();
        let thread = thread::Builder::new().name("timer-call".to_owned()).spawn(move || reply.send(function()));
        Self::from_result(thread.map(|_detached| Self::sent(answer, |answer| answer)).map_err(Error::ThreadRefused))
    }

    /// Runs the steps of a call, which await other calls. Each step is taken by the thread that has
    /// answered the one before, so the call goes on without its caller.
    pub(crate) fn of_steps(steps: impl Future<Output = Result<T, Error>> + Send + 'static) -> Self {
        let (reply, answer) = Reply::new();
        let steps = Box::pin(async move { reply.send(steps.await) });
        Arc::new(Steps(Mutex::new(Progress { steps: Some(steps), is_woken: false }))).advance();
        Self::sent(answer, |answer| answer)
    }
}

impl<T> Unpin for Call<T> {}

impl<T> Future for Call<T> {
    type Output = Result<T, Error>;

    /// # Panics
    ///
    /// Panics if the answer was taken before.
    #[expect(clippy::expect_used, reason = "a future may panic if it is polled after its end")]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            State::Ready(answer) => Poll::Ready(answer.take().expect("the answer of the call was taken before")),
            State::Sent(answer) => {
                let answer = std::task::ready!(answer.as_mut().poll(context));
                self.state = State::Ready(None);
                Poll::Ready(answer)
            }
        }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_ready = matches!(self.state, State::Ready(_));
        f.debug_struct("Call").field("is_ready", &is_ready).finish_non_exhaustive()
    }
}

/// Wakes a thread that waits for an answer.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// A call of several steps. The thread that wakes it takes its next step.
struct Steps(Mutex<Progress>);

struct Progress {
    /// `None` while a thread takes a step, and after the last one.
    steps: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Whether the call was woken since the current step began.
    is_woken: bool,
}

impl Steps {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes steps until the next one has to wait for an answer. Leaves them to the thread that
    /// takes one already, if there is one.
    fn advance(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut context = Context::from_waker(&waker);
        loop {
            let mut progress = self.lock();
            progress.is_woken = true;
            let Some(mut steps) = progress.steps.take() else { return };
            progress.is_woken = false;
            drop(progress);
            if steps.as_mut().poll(&mut context).is_ready() {
                return;
            }
            let mut progress = self.lock();
            progress.steps = Some(steps);
            if !progress.is_woken {
                return;
            }
        }
    }
}

impl Wake for Steps {
    fn wake(self: Arc<Self>) {
        self.advance();
    }
}
