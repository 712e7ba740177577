//! A shard: a wheel behind a latch, with an inbox, and the counts of what was accepted and cancelled here.
//!
//! Callers are spread among the shards by thread; most are alone on theirs and work on its wheel directly, the others leave
//! notes ([`crate::inbox`]). A note, like every change here, makes the wheel agree with the state word of one entry, so it may be
//! read late, early or twice.
//!
//! `next` is the earliest tick in the wheel or an earlier one; only the latch's holder writes it. A holder that lowers it
//! tells the alarm after leaving ([`crate::alarm`]). The worker that finds the latch of a due shard taken pokes and goes on;
//! the holder wakes it after leaving. `stop` closes a shard, reads its notes and empties it; a caller that finds it closed, or
//! whose note came after that, takes its timeout back by its state word.
//!
//! Ground rule: nothing of the user's runs or is dropped while the latch is held. Entries that leave the wheel are put aside
//! until then.

use crate::context::Context;
use crate::entry::AnyEntry;
use crate::entry_wheel::{Due, EntryWheel};
use crate::inbox::{Entered, Inbox};
use crate::sync::{Arc, AtomicU64, Hold, Ordering};
use crate::tally::Tally;
use crate::time::{IMMEDIATE, NO_TICK};
use crate::timeout::Timeout;

/// "Look at this entry; if it waits, link it under this tick at the latest."
struct Note {
    entry: Arc<dyn AnyEntry>,
    tick: u64,
}

/// When so many entries were taken out, the owner of the turn hands them over before it takes more: what it has just read
/// is still in the processor's cache then, and the latch is not held for long.
const BITE: usize = 1024;

/// How much of what is due the owner of the turn has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Collected {
    All,
    /// Not all: there were many.
    Some,
    /// Nothing: the latch was taken. Its holder will wake the owner of the turn.
    None,
}

/// What has become of an entry that was brought to its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Submitted {
    /// It is linked, or will be by whoever holds the latch.
    Accepted,
    /// The shard takes no more.
    Closed,
    /// The shard takes no more; it closed before the note was counted, but `stop` may have read it all the same. The entry's
    /// state word says so.
    ClosedLate,
}

/// One of the parts among which callers are spread. Its own cache lines: no caller touches another shard's.
#[repr(align(128))]
pub(crate) struct Shard {
    inbox: Inbox<EntryWheel, Note>,
    next: AtomicU64,
    scheduled: Tally,
    cancelled: Tally,
    /// How often a caller met a taken latch.
    handed_over: AtomicU64,
    /// What the wheel counts, for readers without the latch.
    cascaded: AtomicU64,
    context: Arc<Context>,
}

/// What a holder does after it has left.
#[derive(Default)]
struct Afterwards {
    /// Entries that left the wheel; the last handle to one may be here, so they are dropped with no latch held.
    unlinked: Vec<Arc<dyn AnyEntry>>,
    /// The least tick to tell the alarm.
    wake_before: Option<u64>,
}

impl Shard {
    pub(crate) fn new(context: Arc<Context>, wheel: EntryWheel) -> Self {
        Self {
            inbox: Inbox::new(wheel),
            next: AtomicU64::new(NO_TICK),
            scheduled: Tally::default(),
            cancelled: Tally::default(),
            handed_over: AtomicU64::new(0),
            cascaded: AtomicU64::new(0),
            context,
        }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Links a new entry. The caller has taken a place for it; if the shard is closed it takes the entry back.
    #[inline]
    pub(crate) fn schedule(&self, entry: Arc<dyn AnyEntry>, tick: u64) -> Submitted {
        match self.inbox.enter() {
            Entered::Holder(mut wheel) => {
                self.scheduled.add(1);
                let mut after = Afterwards::default();
                self.link(&mut wheel, entry, tick, &mut after);
                self.leave(wheel, after);
                Submitted::Accepted
            }
            Entered::Closed => Submitted::Closed,
            Entered::Taken => {
                self.scheduled.add_shared(1);
                self.leave_note(Note { entry, tick })
            }
        }
    }

    /// Takes back what `schedule` has counted for an entry that was retracted after all.
    pub(crate) fn unschedule_note(&self) {
        self.scheduled.take_back(1);
    }

    /// Links an entry that waits (again), or links it earlier; does nothing for one that has ended.
    pub(crate) fn submit(&self, entry: Arc<dyn AnyEntry>, tick: u64) -> Submitted {
        match self.inbox.enter() {
            Entered::Holder(mut wheel) => {
                let mut after = Afterwards::default();
                self.reconcile(&mut wheel, Note { entry, tick }, &mut after);
                self.leave(wheel, after);
                Submitted::Accepted
            }
            Entered::Closed => Submitted::Closed,
            Entered::Taken => self.leave_note(Note { entry, tick }),
        }
    }

    /// Counts a timeout that its caller has cancelled and takes it out of the wheel.
    #[inline]
    pub(crate) fn unlink_cancelled(&self, timeout: &Timeout) {
        match self.inbox.enter_to_settle() {
            Some(mut wheel) => {
                self.cancelled.add(1);
                let unlinked = wheel.remove(timeout.entry());
                self.leave(wheel, Afterwards::default());
                drop(unlinked);
            }
            None => {
                self.cancelled.add_shared(1);
                // A closed shard has emptied its wheel: there is nothing to unlink.
                let _ = self.leave_note(Note { entry: timeout.entry().clone(), tick: NO_TICK });
            }
        }
    }

    /// The earliest tick at which something may be due here, or an earlier one.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        // ORDERING: Relaxed, the alarm's word orders this load after the store that matters.
        self.next.load(Ordering::Relaxed)
    }

    /// [`next`](Self::next) for the sleeper, after it has armed the alarm: [`NO_TICK`] while a poke waits for its answer,
    /// because the holder that answers it will wake the sleeper. (An answer given before the alarm was armed is seen here:
    /// the holder's wake, a read-modify-write of the alarm's word, came after it took `POKED` off.)
    pub(crate) fn next_for_sleeper(&self) -> u64 {
        if self.inbox.is_poked() { NO_TICK } else { self.next() }
    }

    /// Whether `next` says all: no note is unread and no poke unanswered.
    pub(crate) fn is_settled(&self) -> bool {
        self.inbox.is_settled()
    }

    /// For the owner of the turn: moves what is due at `tick` to the end of `due`, until there are [`BITE`] or more.
    /// With `again` set it goes on where it stopped, and leaves what has become overdue meanwhile to the next turn.
    pub(crate) fn collect(&self, tick: u64, again: bool, due: &mut Vec<Due>) -> Collected {
        loop {
            match self.inbox.enter() {
                Entered::Holder(mut wheel) => {
                    let mut after = Afterwards::default();
                    self.inbox.read_notes(&mut wheel, |wheel, note| self.reconcile(wheel, note, &mut after));
                    if !again {
                        wheel.take_overdue(due);
                    }
                    let mut more = true;
                    while more && due.len() < BITE {
                        more = wheel.take_due(tick, due);
                    }
                    self.publish(&wheel);
                    self.leave(wheel, after);
                    return if more { Collected::Some } else { Collected::All };
                }
                // Whoever closed it has emptied it; nothing may be linked here any more.
                Entered::Closed => return Collected::All,
                // If the holder has left before the poke, nobody would answer it.
                Entered::Taken if self.inbox.poke() => return Collected::None,
                Entered::Taken => {}
            }
        }
    }

    /// The exact earliest tick, for drivers of virtual time.
    pub(crate) fn earliest(&self) -> Option<u64> {
        let mut wheel = self.inbox.enter_patiently();
        let mut after = Afterwards::default();
        self.inbox.read_notes(&mut wheel, |wheel, note| self.reconcile(wheel, note, &mut after));
        let earliest = if wheel.has_overdue() { Some(IMMEDIATE) } else { wheel.next_expiry() };
        self.leave(wheel, after);
        earliest
    }

    /// For `stop`: takes no more from now on, and moves everything that is in it to `out`.
    pub(crate) fn close(&self, out: &mut Vec<Due>) {
        let mut wheel = self.inbox.enter_patiently();
        let mut after = Afterwards::default();
        self.inbox.close(&wheel);
        // After that: whoever counts a note from now on is told that it is too late, and every other one is read here.
        self.inbox.read_notes(&mut wheel, |wheel, note| self.reconcile(wheel, note, &mut after));
        wheel.drain(out);
        self.publish(&wheel);
        self.leave(wheel, after);
    }

    /// Counts a timeout that `stop` has ended.
    pub(crate) fn count_withdrawn(&self) {
        self.cancelled.add_shared(1);
    }

    /// How many timeouts were cancelled here.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled.get()
    }

    /// How many timeouts were accepted here.
    pub(crate) fn scheduled(&self) -> u64 {
        self.scheduled.get()
    }

    /// How often a caller left a note.
    pub(crate) fn handed_over(&self) -> u64 {
        // ORDERING: Relaxed, a count for people.
        self.handed_over.load(Ordering::Relaxed)
    }

    /// How many entries were moved to a finer level so far.
    pub(crate) fn cascaded(&self) -> u64 {
        // ORDERING: Relaxed, a count for people.
        self.cascaded.load(Ordering::Relaxed)
    }

    #[cold]
    fn leave_note(&self, note: Note) -> Submitted {
        // ORDERING: Relaxed, a count for people.
        self.handed_over.fetch_add(1, Ordering::Relaxed);
        let posted = self.inbox.post(note);
        if let Some(wheel) = posted.holder {
            self.leave(wheel, Afterwards::default());
        }
        if posted.closed { Submitted::ClosedLate } else { Submitted::Accepted }
    }

    /// The holder's way out, and what is to be done when it is out.
    #[inline]
    fn leave(&self, wheel: Hold<'_, EntryWheel>, after: Afterwards) {
        let mut after = after;
        let poked = self.inbox.leave(wheel, |wheel, note, closed| match closed {
            false => self.reconcile(wheel, note, &mut after),
            // Too late, as its caller was told: nothing is linked here any more.
            true => after.unlinked.push(note.entry),
        });
        let wake_before = if poked { Some(IMMEDIATE) } else { after.wake_before };
        if let Some(tick) = wake_before {
            self.context.alarm.wake_before(tick);
        }
    }

    /// Makes the wheel agree with the entry's state word.
    fn reconcile(&self, wheel: &mut EntryWheel, note: Note, after: &mut Afterwards) {
        let Note { entry, tick } = note;
        let waits = entry.word().is_waiting();
        match wheel.linked(&entry) {
            None if waits => self.link(wheel, entry, tick, after),
            Some(linked) if !waits || tick < linked => {
                after.unlinked.extend(wheel.remove(&entry));
                if waits {
                    self.link(wheel, entry, tick, after);
                } else {
                    after.unlinked.push(entry);
                }
            }
            _ => after.unlinked.push(entry),
        }
    }

    #[inline]
    fn link(&self, wheel: &mut EntryWheel, entry: Arc<dyn AnyEntry>, tick: u64, after: &mut Afterwards) {
        wheel.insert(tick, entry);
        // ORDERING: Relaxed load, only the holder writes it. The store is published by the latch's release and, for the
        // sleeper, by the alarm's word.
        if tick < self.next.load(Ordering::Relaxed) {
            self.next.store(tick, Ordering::Relaxed);
            after.wake_before = Some(after.wake_before.map_or(tick, |earlier| earlier.min(tick)));
        }
    }

    /// Sets `next`, and the count of what was cascaded, to what the wheel says.
    fn publish(&self, wheel: &EntryWheel) {
        let next = if wheel.has_overdue() { IMMEDIATE } else { wheel.next_expiry().unwrap_or(NO_TICK) };
        // ORDERING: Relaxed, as in `link`; the count is for people.
        self.next.store(next, Ordering::Relaxed);
        self.cascaded.store(wheel.cascaded(), Ordering::Relaxed);
    }
}
