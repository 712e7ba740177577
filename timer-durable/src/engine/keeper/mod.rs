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
//!   does an operation whose timeout another transaction has locked (`aside`).
//! - If nothing was written, callers get the error. If nothing was sent, they wait for a while
//!   until the keeper has joined again (`outage`). Ends of attempts and due timeouts stay in memory
//!   and are written later, after a pause that grows up to a second.
//! - If the outcome is unknown, or another instance has taken over, the keeper becomes a new
//!   instance ([`Store::rejoin`]) and loads its memory anew. Handlers that run here go on. The new
//!   instance writes their ends, which the store accepts if the attempt is still the last one.
//!   Handlers that still wait for a thread do not start ([`Term`]).
//!
//! The keeper calls no user code except the executor, the work of [`Store::transact`], and the
//! wakers of callers. Their panics are contained. If the keeper
//! panics all the same, because of a fault in the store or in itself, it ends (`stop`).

mod alone;
mod aside;
mod begin;
mod commit;
mod end;
mod gates;
mod hand_over;
mod late;
mod limits;
mod many;
mod memory;
mod oldest;
mod outage;
mod pauses;
mod places;
mod publish;
mod settings;
mod shelves;
mod stop;
mod transact;
mod unhandled;

use super::collect::Held;
use super::head::Head;
use super::id_map::IdMap;
use super::pace::Pace;
use super::term::Term;
use crate::TimeoutId;
use crate::figures::Figures;
use crate::message::{AttemptEnd, Message};
use crate::shutdown::Shutdown;
use crate::store::{Micros, Store, StoreError};
use alone::LockedCall;
use aside::WaitingBatch;
use crossbeam_channel::{Receiver, Sender};
use fastrand::Rng;
use gates::Gates;
use hand_over::Lanes;
use late::Record;
use limits::Limits;
pub(crate) use limits::THREADS;
use memory::heads;
use oldest::Look;
use pauses::PauseClock;
use settings::Running;
pub(crate) use settings::Settings;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stop::{Ending, Stopping};
use unhandled::Unhandled;

/// The first and the longest pause after a failure of the store.
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The time after which a turn divides no more batches. Other calls must not wait behind one
/// statement after the other that waits for a lock. A turn in which upkeep is due ends earlier.
const DIVIDING: Duration = Duration::from_millis(100);

/// Whether the keeper goes on.
pub(crate) enum Flow {
    Continue,
    End(Ending),
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
    /// Messages that wait for the next batch.
    held: Held,
    /// Calls that wait for the store, with the time at which they arrived.
    waiting: VecDeque<(Instant, Message)>,
    /// Ends that a failed commit has not written.
    unwritten: Vec<AttemptEnd>,
    /// Operations that wait apart from all others.
    aside: Vec<WaitingBatch>,
    /// Calls that are written alone and wait for a lock.
    locked: Vec<LockedCall>,
    /// Whether this turn has found that another program has locked the store.
    is_store_locked: bool,
    /// Whether the previous turn has found and reported that.
    was_store_locked: bool,
    lanes: Lanes,
    gates: Gates,
    record: Record,
    look: Look,
    unhandled: Unhandled,
    must_rejoin: bool,
    /// The text of the last failure of the store.
    failure: String,
    pause: Duration,
    /// The keeper does not wake up for a commit before this time. A message that arrives earlier is
    /// written at once.
    paused_until: Option<Instant>,
    stopping: Option<Stopping>,
    shutdown: Arc<Shutdown>,
    clock: PauseClock,
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
        let clock = PauseClock::new(&settings, store.now());
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
            held: Held::default(),
            waiting: VecDeque::new(),
            unwritten: Vec::new(),
            aside: Vec::new(),
            locked: Vec::new(),
            is_store_locked: false,
            was_store_locked: false,
            lanes,
            gates,
            record,
            look: Look::default(),
            unhandled: Unhandled::default(),
            must_rejoin: false,
            failure: String::new(),
            pause: clock.first_pause(),
            paused_until: None,
            stopping: None,
            shutdown,
            clock,
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
        !self.inbox.is_empty() || self.waits_until() == Some(None)
    }

    /// Sleeps until there is something to do. Returns the message that has arrived, if any.
    fn wait(&mut self) -> Option<Message> {
        match self.waits_until() {
            None => self.inbox.recv().ok(),
            Some(None) => self.inbox.try_recv().ok(),
            Some(Some(until)) => self.inbox.recv_deadline(until).ok(),
        }
    }

    /// Returns the time until which the keeper may sleep: `None` without a limit, `Some(None)` if
    /// there is something to do now.
    fn waits_until(&self) -> Option<Option<Instant>> {
        let now = self.present();
        let mut until = Vec::new();
        if !self.must_rejoin {
            until.extend(self.next_upkeep());
        }
        until.extend(self.stopping.as_ref().and_then(|stopping| stopping.until));
        let paused = self.paused_until.filter(|until| *until > now);
        if let Some(paused) = paused {
            until.push(paused);
            until.extend(self.next_failure());
        } else {
            let is_written = self.held.is_empty() && self.waiting.is_empty() && self.unwritten.is_empty();
            let idle = is_written && !self.must_rejoin;
            if !idle {
                return Some(None);
            }
            until.extend(self.next_aside());
            // A look at figures does not stop virtual time.
            let look = self.next_look().filter(|look| !self.clock.is_virtual() || *look <= self.store.now());
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
        match until.into_iter().min() {
            None => None,
            Some(first) if first <= now => Some(None),
            Some(first) => Some(Some(first)),
        }
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
        self.was_store_locked = std::mem::take(&mut self.is_store_locked);
        if !self.must_rejoin && self.store.must_rejoin() {
            (self.must_rejoin, self.failure) = (true, "its connection is broken".to_owned());
        }
        if self.must_rejoin {
            self.rejoin();
        }
        if self.must_rejoin {
            self.fail_calls_aside();
        }
        let collection = self.collect(first);
        let until = self.present() + DIVIDING;
        let until = self.next_upkeep().map_or(until, |next| until.min(next));
        if !collection.is_empty() {
            self.write(collection, until);
        }
        self.write_aside(until);
        self.write_locked(until);
        self.start_rejected();
        if !self.must_rejoin {
            if self.is_upkeep_due() {
                self.keep_up();
            }
            if !self.is_store_locked {
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
        if *error == StoreError::Busy && !self.clock.is_virtual() {
            return self.note_store_lock();
        }
        self.figures.lock().store_errors += 1;
        self.must_rejoin |= matches!(error, StoreError::InDoubt(_) | StoreError::Disconnected(_) | StoreError::Fenced);
        if self.must_rejoin {
            self.term.finish();
        }
        self.failure = error.to_string();
        tracing::error!(timer = %self.settings.name, store = %self.store.describe(), %error, "the store has failed");
        // After the first failure the keeper joins again at once, so that calls wait for it.
        let joins_at_once = self.must_rejoin && self.pause <= MIN_PAUSE;
        self.paused_until = if joins_at_once { None } else { Some(self.present() + self.pause) };
        self.pause = self.clock.next_pause(self.pause, MAX_PAUSE);
    }

    /// Renews the lease and collects the writes of others.
    fn keep_up(&mut self) {
        let running: Vec<TimeoutId> = self.running.keys().copied().collect();
        let upkeep = self.store.upkeep(&running);
        self.figures.lock().membership = self.store.membership();
        self.term.set_end(|| self.store.lease_end());
        match upkeep {
            Ok(upkeep) => {
                if upkeep.shards_gained {
                    self.note_gain();
                    self.renew_heads();
                }
                if upkeep.shards_gained || upkeep.pauses_changed {
                    self.load_gates();
                }
                if let Err(error) = self.put_foreign(upkeep.foreign) {
                    // Nothing else tells of these timeouts.
                    self.clear_heads();
                    self.fail(&error);
                }
            }
            Err(error) => self.fail(&error),
        }
    }
}
