//! The keeper, the only thread that uses the store and the memory.
//!
//! The keeper conducts its parts, each of which owns its state and does not know the keeper. Only
//! the files of this module use the store. A turn of the keeper:
//!
//! 1. Collect calls, ends of attempts and due timeouts into one batch.
//! 2. Write the batch as one transaction. Messages that arrive now go into the next one, so
//!    all callers that wait share a commit.
//! 3. Apply the outcomes to the memory, answer callers, start handlers.
//! 4. Renew the lease if the store has one. Load a page if the memory has room.
//!
//! The keeper sleeps until a message arrives, a timeout is due, the store needs upkeep, or a task
//! that the executor has rejected is offered again. It does not poll for due timeouts.
//!
//! # Failures
//!
//! - If the store refuses an operation that belongs to a call, the call fails. A refused end or
//!   begin waits apart from all others, and so does an operation whose timeout another transaction
//!   has locked ([`Unwritten`]).
//! - If nothing was written, callers get the error. If nothing was sent, they wait for a while
//!   until the keeper has joined again ([`Failures`]). Ends of attempts and due timeouts stay in
//!   memory and are written later, after a pause that grows up to a second.
//! - If the outcome is unknown, or another instance has taken over, the keeper becomes a new
//!   instance ([`Store::rejoin`]) and loads its memory anew. Handlers that run here go on. The new
//!   instance writes their ends, which the store accepts if the attempt is still the last one.
//!   Handlers that still wait for a thread do not start ([`Term`]).
//!
//! The keeper calls no user code except the executor, the work of [`Store::transact`], and the
//! wakers of callers. Their panics are contained. If the keeper panics all the same, because of a
//! fault in the store or in itself, it ends ([`Stopping`]).

mod apply;
mod calls;
mod collect;
mod commit;
mod lease;
mod load;
mod retain;
mod shared;
mod sleep;

use super::attempts::Attempts;
use super::executors::Executors;
use super::failures::{Failures, PauseClock};
use super::queue::Queue;
use super::record::Record;
use super::settings::Settings;
use super::stopping::{Ending, Stopping};
use super::term::Term;
use super::unwritten::{Unwritten, Waited};
use crate::figures::Figures;
use crate::lateness::DurableLateCause;
use crate::message::Message;
use crate::shutdown::Shutdown;
use crate::store::{Store, StoreError};
use crossbeam_channel::{Receiver, Sender};
use std::sync::Arc;
use timer_core::lateness::QuotaWatch;
use timer_executor::{PanicMessage, panics};

/// Whether the keeper goes on.
pub(crate) enum Flow {
    Continue,
    End(Ending),
}

/// The keeper, which conducts its parts. They are dropped in their order, the store before the
/// inbox.
pub(crate) struct Keeper {
    store: Box<dyn Store>,
    settings: Arc<Settings>,
    unwritten: Unwritten,
    queue: Queue,
    attempts: Attempts,
    executors: Executors,
    record: Record,
    failures: Failures,
    stopping: Stopping,
    inbox: Receiver<Message>,
}

impl Keeper {
    /// Joins the store and creates a keeper with an empty memory.
    pub(crate) fn new(
        mut store: Box<dyn Store>,
        settings: Settings,
        channel: (Sender<Message>, Receiver<Message>),
        figures: Arc<Figures>,
        shutdown: Arc<Shutdown>,
    ) -> Result<Self, StoreError> {
        let (sender, inbox) = channel;
        let waker = sender.clone();
        store.set_waker(Arc::new(move || _ = waker.send(Message::UseStore(Box::new(|_| ())))));
        store.rejoin()?;
        figures.lock().pending = store.pending();
        figures.add_topics(settings.topics.keys().chain(&settings.elsewhere).map(|name| &**name));
        let now = store.now();
        let instance = store.instance();
        let settings = Arc::new(settings);
        let clock = PauseClock::new(settings.settle.is_some(), now);
        let term = Term::new(shutdown.clone(), || store.lease_end());
        let quota = if clock.is_virtual() { QuotaWatch::default() } else { QuotaWatch::of_this_process() };
        let mut keeper = Self {
            store,
            unwritten: Unwritten::new(clock, &settings),
            queue: Queue::new(settings.clone(), now),
            attempts: Attempts::new(settings.clone(), instance),
            executors: Executors::new(settings.clone(), term, sender),
            record: Record::new(figures, now, quota),
            failures: Failures::new(clock),
            stopping: Stopping::new(shutdown),
            inbox,
            settings,
        };
        keeper.note_membership();
        keeper.read_pauses()?;
        Ok(keeper)
    }

    /// Takes turns until the timer is stopped.
    pub(crate) fn run(mut self) {
        let take_turn = |keeper: &mut Self| {
            let message = keeper.wait();
            keeper.turn(message)
        };
        loop {
            if let Flow::End(ending) = self.guard(take_turn) {
                return self.close(ending);
            }
        }
    }

    /// Takes one turn without waiting.
    pub(crate) fn take_turn(&mut self) -> Flow {
        self.guard(|keeper| keeper.turn(None))
    }

    /// Drops the keeper and answers the callers of `stop`.
    pub(crate) fn close(self, ending: Ending) {
        ending.close(self);
    }

    /// Calls `body`. If it panics, because of a fault in the store or in the keeper, the timer
    /// ends, because nobody knows the state of the memory.
    fn guard(&mut self, body: impl FnOnce(&mut Self) -> Flow) -> Flow {
        panics::catch(|| body(self)).unwrap_or_else(|panic| Flow::End(self.end_by(&panic)))
    }

    fn end_by(&mut self, panic: &PanicMessage) -> Ending {
        self.executors.term().finish();
        let timer = &self.settings.name;
        // A subscriber that panics leaves no place to report to.
        let _ = panics::catch(|| tracing::error!(%timer, %panic, "the keeper panicked, which has ended the timer"));
        self.stopping.end(self.attempts.len(), false)
    }

    /// Takes one turn. `first` is a message that was received already.
    fn turn(&mut self, first: Option<Message>) -> Flow {
        let begun = self.present();
        self.record.wake(self.store.now());
        self.figures().lock().turns += 1;
        self.failures.begin_turn();
        if !self.failures.must_rejoin() && self.store.must_rejoin() {
            self.failures.lose_connection();
        }
        if self.failures.must_rejoin() {
            self.rejoin();
        }
        self.fail_late_calls();
        let collection = self.collect(first);
        let until = self.deadline();
        if !collection.is_empty() {
            self.write(collection, Waited::default(), until);
        }
        self.write_aside(begun, until);
        self.note(DurableLateCause::System);
        self.executors.start_rejected(self.attempts.occupied(), |topic| self.queue.running(topic));
        self.note(DurableLateCause::Executor);
        if !self.failures.must_rejoin() {
            if self.is_upkeep_due() {
                self.keep_up();
            }
            if !self.failures.is_locked() {
                self.load();
            }
        }
        if !self.failures.must_rejoin() && !self.stopping.has_begun() {
            self.purge_old();
        }
        self.look();
        self.record.report_unhandled(&self.settings.name, self.store.now());
        self.publish();
        self.record.rest(self.sleep_cause(), self.store.now());
        self.end_if_stopped()
    }

    /// Returns the cause of the lateness of timeouts that become due during the next sleep.
    fn sleep_cause(&self) -> DurableLateCause {
        if self.failures.must_rejoin() || self.failures.paused_until(self.present()).is_some() {
            DurableLateCause::Store
        } else if !self.store.may_begin() {
            DurableLateCause::Lease
        } else if self.executors.is_full() {
            DurableLateCause::Executor
        } else if self.attempts.free() == 0 {
            DurableLateCause::Places
        } else {
            DurableLateCause::System
        }
    }

    /// Publishes the figures of the memory.
    fn publish(&self) {
        let in_memory = self.queue.len();
        let running = self.attempts.len();
        let pending = self.store.pending().map(|pending| self.known_pending(pending, in_memory, running));
        let mut stats = self.figures().lock();
        stats.in_memory = in_memory as u64;
        stats.running = running as u64;
        stats.due = self.queue.due_len() as u64;
        stats.pending = pending;
    }

    /// Returns the number of pending timeouts, of which the store has counted `pending`. That
    /// number may be older than the memory. After a rejoin the memory has the running ones as well.
    fn known_pending(&self, pending: u64, in_memory: usize, running: usize) -> u64 {
        if (in_memory + running) as u64 <= pending {
            return pending;
        }
        let in_no_head = self.attempts.ids().filter(|id| !self.queue.contains(*id));
        pending.max((in_memory + in_no_head.count()) as u64)
    }

    /// Ends the keeper when all handlers have ended and their ends are written, or at the limit.
    fn end_if_stopped(&mut self) -> Flow {
        if !self.stopping.has_begun() {
            return Flow::Continue;
        }
        let is_over = self.stopping.until().is_some_and(|until| until <= self.present());
        let is_quiet = self.attempts.len() == 0 && self.unwritten.is_empty();
        if !is_quiet && !is_over {
            return Flow::Continue;
        }
        self.executors.term().finish();
        self.put_back();
        let released = self.leave();
        Flow::End(self.stopping.end(self.attempts.len(), released))
    }
}
