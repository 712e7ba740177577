//! The keeper, the only thread that uses the store and the memory.
//!
//! A turn of the keeper:
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
//! - If the store refuses an operation without naming it, the batch is divided to find it. If it
//!   belongs to a call, the call fails. A refused end or begin waits apart from all others, and so
//!   does an operation whose timeout another transaction has locked ([`Unwritten`]).
//! - If nothing was written, callers get the error. If nothing was sent, they wait for a while
//!   until the keeper has joined again ([`Failures`]). Ends of attempts and due timeouts stay in
//!   memory and are written later, after a pause that grows up to a second.
//! - If the outcome is unknown, or another instance has taken over, the keeper becomes a new
//!   instance ([`Store::rejoin`]) and loads its memory anew. Handlers that run here go on. The new
//!   instance writes their ends, which the store accepts if the attempt is still the last one.
//!   Handlers that still wait for a thread do not start ([`Term`]).
//!
//! The keeper calls no user code except the executor, the work of [`Store::transact`], and the
//! wakers of callers. Their panics are contained. If the keeper
//! panics all the same, because of a fault in the store or in itself, it ends (`stop`).

mod begin;
mod calls;
mod collect;
mod commit;
mod end;
mod gates;
mod hand_over;
mod late;
mod lease;
mod limits;
mod memory;
mod oldest;
mod places;
mod publish;
mod settings;
mod shelves;
mod stop;
mod unhandled;

use super::failures::Failures;
use super::head::Head;
use super::id_map::IdMap;
use super::pace::Pace;
use super::pauses::PauseClock;
use super::term::Term;
use super::unwritten::Unwritten;
use crate::figures::Figures;
use crate::message::Message;
use crate::shutdown::Shutdown;
use crate::store::{Micros, Store, StoreError};
use crate::time::micros;
use crossbeam_channel::{Receiver, Sender};
use fastrand::Rng;
use gates::Gates;
use hand_over::Lanes;
use late::Record;
use limits::Limits;
pub(crate) use limits::THREADS;
use memory::heads;
use oldest::Look;
use settings::Running;
pub(crate) use settings::Settings;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stop::{Ending, Stopping};
use unhandled::Unhandled;

/// The time after which a turn divides no more batches. Other calls must not wait behind one
/// statement after the other that waits for a lock. A turn in which upkeep is due ends earlier.
const DIVIDING: Duration = Duration::from_millis(100);

/// Whether the keeper goes on.
pub(crate) enum Flow {
    Continue,
    End(Ending),
}

/// How long the keeper may sleep if no message arrives.
enum Sleep {
    UntilMessage,
    Until(Instant),
    /// There is something to do.
    No,
}

/// The state of the keeper. Its fields are dropped in their order, the store before the inbox.
pub(crate) struct Keeper<S> {
    store: S,
    settings: Settings,
    /// The time in which handlers of this instance may start.
    term: Term,
    inbox: Receiver<Message>,
    /// The sender that each handler's `KeeperHandle` gets a clone of.
    sender: Sender<Message>,
    figures: Arc<Figures>,
    /// Timeouts that were due when [`heads`] was called, and all others.
    overdue: Head,
    current: Head,
    pace: Pace,
    running: IdMap<Running>,
    limits: Limits,
    overdue_running: usize,
    /// The number of attempts in `running` that are parked.
    parked: usize,
    /// Whether the timeout that began last was overdue.
    overdue_began_last: bool,
    /// The most timeouts that begin in one batch, by the size of earlier answers.
    max_begins: usize,
    unwritten: Unwritten,
    lanes: Lanes,
    gates: Gates,
    record: Record,
    look: Look,
    unhandled: Unhandled,
    failures: Failures,
    stopping: Option<Stopping>,
    shutdown: Arc<Shutdown>,
    /// The source of the random delays of retries.
    random: RefCell<Rng>,
}

impl<S: Store> Keeper<S> {
    /// Joins the store and creates a keeper with an empty memory.
    pub(crate) fn new(
        mut store: S,
        settings: Settings,
        channel: (Sender<Message>, Receiver<Message>),
        figures: Arc<Figures>,
        shutdown: Arc<Shutdown>,
    ) -> Result<Self, StoreError> {
        let (sender, inbox) = channel;
        let waker = sender.clone();
        store.set_waker(Arc::new(move || _ = waker.send(Message::UseStore(Box::new(|_| ())))));
        store.rejoin()?;
        figures.lock().membership = store.membership();
        figures.lock().pending = store.pending();
        let pace = Pace::new(settings.overdue_rate, store.now());
        let clock = PauseClock::new(settings.settle.is_some(), store.now());
        let random = RefCell::new(Rng::with_seed(settings.seed));
        let (overdue, current) = heads(&store, &settings, 0);
        let term = Term::new(shutdown.clone(), || store.lease_end());
        let (lanes, gates) = (Lanes::new(&settings), Gates::new(&settings, store.now()));
        let record = Record::new(store.now());
        figures.add_topics(settings.topics.keys().chain(&settings.elsewhere).map(|name| &**name));
        let mut keeper = Self {
            overdue,
            current,
            pace,
            store,
            settings,
            term,
            inbox,
            sender,
            figures,
            running: IdMap::default(),
            limits: Limits::default(),
            overdue_running: 0,
            parked: 0,
            overdue_began_last: false,
            max_begins: begin::FIRST_BEGINS,
            unwritten: Unwritten::new(clock),
            lanes,
            gates,
            record,
            look: Look::default(),
            unhandled: Unhandled::default(),
            failures: Failures::new(clock),
            stopping: None,
            shutdown,
            random,
        };
        keeper.open_gates()?;
        Ok(keeper)
    }

    /// Returns the first time at which a timeout in memory may begin.
    pub(crate) fn next_due(&self) -> Option<Micros> {
        if self.occupied() >= self.settings.max_running {
            return None;
        }
        let now = self.store.now();
        let overdue = self.overdue.next_due().map(|due| self.pace.next().map_or(due, |next| due.max(next)));
        let shelf = self.gates.next_shelf(&self.lanes, now);
        let for_overdue = [overdue, shelf].into_iter().flatten().filter(|_| self.places_for_overdue() > 0);
        let ready = [self.next_ready(&self.overdue, true, now), self.next_ready(&self.current, false, now)];
        ready.into_iter().flatten().chain(self.current.next_due()).chain(for_overdue).min()
    }

    /// Returns the time from which the next page can be loaded.
    pub(crate) fn next_page(&self) -> Option<Micros> {
        [self.overdue.next_page(), self.current.next_page()].into_iter().flatten().min()
    }

    /// Returns `true` if the next turn has something to do.
    pub(crate) fn has_work(&self) -> bool {
        !self.inbox.is_empty() || matches!(self.sleep(), Sleep::No)
    }

    /// Sleeps until there is something to do. Returns the message that has arrived, if any.
    fn wait(&mut self) -> Option<Message> {
        match self.sleep() {
            Sleep::UntilMessage => self.inbox.recv().ok(),
            Sleep::Until(until) => self.inbox.recv_deadline(until).ok(),
            Sleep::No => self.inbox.try_recv().ok(),
        }
    }

    /// Returns how long the keeper may sleep.
    fn sleep(&self) -> Sleep {
        let now = self.present();
        let mut until = Vec::new();
        if !self.failures.must_rejoin() {
            until.extend(self.next_upkeep());
        }
        until.extend(self.stopping.as_ref().and_then(|stopping| stopping.until));
        if let Some(paused) = self.failures.paused_until(now) {
            until.push(paused);
            if self.failures.must_rejoin() && !self.failures.clock().is_virtual() {
                until.extend(self.unwritten.next_failure(now));
            }
        } else {
            if self.failures.must_rejoin() || !self.unwritten.is_quiet() {
                return Sleep::No;
            }
            self.add_wake_ups(&mut until, now);
        }
        match until.into_iter().min() {
            None => Sleep::UntilMessage,
            Some(first) if first <= now => Sleep::No,
            Some(first) => Sleep::Until(first),
        }
    }

    /// Adds the instants at which a keeper that has no pause has something to do.
    fn add_wake_ups(&self, until: &mut Vec<Instant>, now: Instant) {
        until.extend(self.unwritten.next());
        // A look at figures does not stop virtual time.
        let is_virtual = self.failures.clock().is_virtual();
        let look = self.next_look().filter(|look| !is_virtual || *look <= self.store.now());
        until.extend(self.limits.next().into_iter().chain(look).filter_map(|next| self.instant(next, now)));
        if self.stopping.is_none() {
            until.extend(self.next_page().and_then(|next| self.instant(next, now)));
            until.extend(self.store.max_sleep().filter(|_| self.waits_for_clock()).map(|limit| now + limit));
        }
        if self.may_begin() {
            until.extend(self.next_due().and_then(|due| self.instant(due, now)));
        }
        // The executor may be busy with tasks whose ends nobody reports here.
        until.extend(self.lanes.pause().map(|pause| now + pause));
    }

    /// Converts a time of the store's clock.
    fn instant(&self, time: Micros, now: Instant) -> Option<Instant> {
        now.checked_add(self.store.time_until(time))
    }

    /// Returns `true` if something is to happen at a time of the store's clock.
    fn waits_for_clock(&self) -> bool {
        self.next_page().is_some() || self.overdue.len() + self.current.len() > 0
    }

    /// Takes one turn. `first` is a message that was received already.
    fn turn(&mut self, first: Option<Message>) -> Flow {
        self.note_sleep();
        self.figures.lock().turns += 1;
        self.failures.begin_turn();
        if !self.failures.must_rejoin() && self.store.must_rejoin() {
            self.failures.lose_connection();
        }
        if self.failures.must_rejoin() {
            self.rejoin();
        }
        self.fail_late_calls();
        let collection = self.collect(first);
        let until = self.present() + DIVIDING;
        let until = self.next_upkeep().map_or(until, |next| until.min(next));
        if !collection.is_empty() {
            self.write(collection, until);
        }
        self.write_aside(until);
        self.start_rejected();
        if !self.failures.must_rejoin() {
            if self.is_upkeep_due() {
                self.keep_up();
            }
            if !self.failures.is_locked() {
                self.load();
            }
        }
        self.look();
        self.report_unhandled();
        self.publish();
        self.note_rest();
        self.end_if_stopped()
    }

    /// Notes a failure of the store. While another program has locked the store, each turn tries
    /// again without a pause, because the store waits a little for the lock.
    fn fail(&mut self, error: &StoreError) {
        if *error == StoreError::Busy && !self.failures.clock().is_virtual() {
            return self.note_store_lock();
        }
        self.figures.lock().store_errors += 1;
        self.failures.add(error, self.present());
        if self.failures.must_rejoin() {
            self.term.finish();
        }
        tracing::error!(timer = %self.settings.name, store = %self.store.describe(), %error, "the store has failed");
    }

    /// Notes that another program has locked the store.
    fn note_store_lock(&mut self) {
        if self.failures.lock() {
            let (timer, store) = (&self.settings.name, self.store.describe());
            tracing::warn!(%timer, %store, "another program has locked the store");
        }
    }

    /// Reports that other transactions have locked timeouts.
    fn note_locks(&self, timeouts: usize) {
        let (timer, store) = (&self.settings.name, self.store.describe());
        tracing::warn!(%timer, %store, timeouts, "another transaction has locked timeouts");
    }

    /// Returns `true` if the timer is to stop.
    fn is_stop_requested(&self) -> bool {
        self.shutdown.is_requested()
    }

    /// Returns the time of the keeper's next turn if nothing happens until then. It may be now.
    pub(crate) fn next_wake(&self) -> Option<Micros> {
        let wait = match self.sleep() {
            Sleep::UntilMessage => return None,
            Sleep::Until(until) => until.saturating_duration_since(self.present()),
            Sleep::No => Duration::ZERO,
        };
        Some(self.store.now().saturating_add(micros(wait)))
    }

    /// Returns the current time on the store's clock.
    pub(crate) fn now(&self) -> Micros {
        self.store.now()
    }

    /// Ends the pause after a failure of the store, because a call or the driver asks for a turn.
    pub(crate) fn end_pause(&mut self) {
        self.failures.end_pause();
    }

    /// Moves the clock of a store on virtual time.
    pub(crate) fn advance_time(&mut self, by: Duration) {
        if let Err(error) = self.store.advance_time(by) {
            self.fail(&error);
        }
    }

    /// Returns the current time on the clock of the pauses.
    pub(super) fn present(&self) -> Instant {
        self.failures.clock().present(|| self.store.now())
    }

    /// Returns the instant of the store's next upkeep. A store in one process counts its rows in
    /// slices of real time. On virtual time it counts them all at once, except in a pause.
    pub(super) fn next_upkeep(&self) -> Option<Instant> {
        let next = self.store.next_upkeep()?;
        if !self.failures.clock().is_virtual() {
            return Some(next);
        }
        let now = self.present();
        Some(self.failures.paused_until(now).unwrap_or(now))
    }

    pub(super) fn is_upkeep_due(&self) -> bool {
        self.next_upkeep().is_some_and(|next| next <= self.present())
    }
}
