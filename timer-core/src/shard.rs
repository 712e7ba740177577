//! A shard: a wheel, the latch that guards it, and the inbox for those who find the latch taken.
//!
//! Most callers are alone on their shard and work on its wheel directly. Nobody ever waits: whoever finds the latch taken
//! leaves a note in the inbox, and the latch's holder reads it before leaving. The latch word decides both:
//!
//! ```text
//!  63                                          3      2       1      0
//! +---------------------------------------------+--------+--------+------+
//! |  notes pushed and not yet accounted for     | CLOSED | POKED  | HELD |
//! +---------------------------------------------+--------+--------+------+
//! ```
//!
//! The caller:
//!
//! 1. tries to turn `HELD` on. If that succeeds it is the holder: it changes the wheel and leaves (below).
//! 2. Else it pushes its note, **then** adds 1 to the count.
//! 3. If the word it added to had `HELD`, it is done. If not, the holder has left in between: back to step 1, with nothing of
//!    its own to do but to leave.
//!
//! The holder, leaving:
//!
//! 1. tries to turn `HELD` off, which it may only in a word whose count is 0 and that is not `POKED`. If that succeeds it is out.
//! 2. Else it empties the inbox, applies the notes, takes the count it saw off the word, and begins again.
//!
//! *The race*: a caller adds while the holder leaves. *Proof that no note is stranded*: both change the one word by
//! read-modify-writes, so the two have an order. If the caller's addition comes first, the holder's step 1 fails, and
//! because the push came before the addition (Release) and the holder's look after it (Acquire), step 2 finds the note.
//! If the holder's step 1 comes first, the caller sees in step 3 that `HELD` is off and reads the note itself. An inbox
//! is emptied to its end, so a note that is pushed but not yet counted may be applied early; its count then finds an
//! empty inbox, which is harmless: notes only say "look at this entry", and looking twice does nothing.
//!
//! The worker that finds the latch of a due shard taken turns `POKED` on and goes on; the holder wakes it after leaving.
//! `CLOSED` is set by `stop`, under the latch; a caller that sees it in step 1 or 2 takes its timeout back by its state word.
//!
//! `next` is the earliest tick in the wheel or an earlier one; it is written by the holder only. A holder that lowers it
//! tells the alarm after leaving ([`crate::alarm`]).

use crate::context::Context;
use crate::entry::AnyEntry;
use crate::entry_wheel::EntryWheel;
use crate::sync::{Arc, AtomicU64, HELD, Held, Hold, Ordering, Queue, yield_now};
use crate::tally::Tally;
use crate::time::{IMMEDIATE, NO_TICK};
use crate::timeout::Timeout;
use crate::wheel::Spot;

const POKED: u64 = 1 << 1;
const CLOSED: u64 = 1 << 2;
const NOTE: u64 = 1 << 3;

/// "Look at this entry; if it waits, link it under this tick at the latest."
struct Note {
    entry: Arc<dyn AnyEntry>,
    tick: u64,
}

/// What has become of an entry that was brought to its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Submitted {
    /// It is linked, or will be by whoever holds the latch.
    Accepted,
    /// The shard takes no more.
    Closed,
    /// The shard takes no more; it closed while the note was on its way, so `stop` may have taken the entry all the same. Its
    /// state word says so.
    ClosedLate,
}

/// One of the parts among which callers are spread. Its own cache lines: no caller touches another shard's.
#[repr(align(128))]
pub(crate) struct Shard {
    latch: Held<EntryWheel>,
    next: AtomicU64,
    scheduled: Tally,
    cancelled: Tally,
    /// How often a caller met a taken latch.
    handed_over: AtomicU64,
    inbox: Queue<Note>,
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
    pub(crate) fn new(context: Arc<Context>, ring: EntryWheel) -> Self {
        Self {
            latch: Held::new(0, ring),
            next: AtomicU64::new(NO_TICK),
            scheduled: Tally::default(),
            cancelled: Tally::default(),
            handed_over: AtomicU64::new(0),
            inbox: Queue::new(),
            context,
        }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Links a new entry. The caller has taken a place for it; if the shard is closed it takes the entry back.
    #[inline]
    pub(crate) fn schedule(&self, entry: Arc<dyn AnyEntry>, tick: u64) -> Submitted {
        match self.try_latch() {
            Ok(mut ring) => {
                self.scheduled.add(1);
                let mut after = Afterwards::default();
                self.link(&mut ring, entry, tick, &mut after);
                self.leave(ring, after, None);
                Submitted::Accepted
            }
            Err(word) if word & CLOSED != 0 => Submitted::Closed,
            Err(_) => {
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
        match self.try_latch() {
            Ok(mut ring) => {
                let mut after = Afterwards::default();
                self.reconcile(&mut ring, Note { entry, tick }, &mut after);
                self.leave(ring, after, None);
                Submitted::Accepted
            }
            Err(word) if word & CLOSED != 0 => Submitted::Closed,
            Err(_) => self.leave_note(Note { entry, tick }),
        }
    }

    /// Counts a timeout that its caller has cancelled and takes it out of the wheel.
    #[inline]
    pub(crate) fn unlink_cancelled(&self, timeout: &Timeout) {
        match self.latch.try_hold(Some) {
            Ok(mut ring) => {
                self.cancelled.add(1);
                let head = timeout.head();
                let unlinked = ring.remove(head.spot());
                head.set_spot(Spot::NONE);
                self.leave(ring, Afterwards::default(), None);
                drop(unlinked);
            }
            Err(_) => {
                self.cancelled.add_shared(1);
                // A closed shard needs no note, and reads none.
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
        if self.latch.word().load() & POKED != 0 { NO_TICK } else { self.next() }
    }

    /// For the owner of the turn: moves everything due at `tick` to `due`. If the latch is taken, its holder will wake the
    /// owner of the turn; `false` then.
    pub(crate) fn collect(&self, tick: u64, due: &mut Vec<Arc<dyn AnyEntry>>) -> bool {
        loop {
            match self.latch.try_hold(Some) {
                Ok(mut ring) => {
                    let mut after = Afterwards::default();
                    self.read_inbox(&mut ring, &mut after);
                    ring.advance(tick, |entry| {
                        entry.head().set_spot(Spot::NONE);
                        due.push(entry);
                    });
                    self.publish(&ring);
                    self.leave(ring, after, None);
                    return true;
                }
                Err(_) => {
                    // If the holder has left before this, nobody would answer the poke: try again.
                    if self.latch.word().update(|word| (word & HELD != 0).then_some(word | POKED)).is_ok() {
                        return false;
                    }
                }
            }
        }
    }

    /// The exact earliest tick, for drivers of virtual time; waits for the latch, which nobody holds for long.
    pub(crate) fn earliest(&self) -> Option<u64> {
        let mut ring = self.latch_patiently();
        let mut after = Afterwards::default();
        self.read_inbox(&mut ring, &mut after);
        let earliest = if ring.has_overdue() { Some(IMMEDIATE) } else { ring.next_expiry() };
        self.leave(ring, after, None);
        earliest
    }

    /// For `stop`: takes no more from now on, and moves everything that is in it to `out`.
    pub(crate) fn close(&self, out: &mut Vec<Arc<dyn AnyEntry>>) {
        let mut ring = self.latch_patiently();
        let closed = self.latch.word().update(|word| Some(word | CLOSED));
        debug_assert!(closed.is_ok());
        ring.drain(|entry| {
            entry.head().set_spot(Spot::NONE);
            out.push(entry);
        });
        self.publish(&ring);
        self.leave(ring, Afterwards::default(), Some(out));
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
        self.latch.try_hold(Some).map_or(0, |ring| {
            let cascaded = ring.cascaded();
            self.leave(ring, Afterwards::default(), None);
            cascaded
        })
    }

    #[inline]
    fn try_latch(&self) -> Result<Hold<'_, EntryWheel>, u64> {
        self.latch.try_hold(|word| (word & CLOSED == 0).then_some(word))
    }

    fn latch_patiently(&self) -> Hold<'_, EntryWheel> {
        loop {
            match self.latch.try_hold(Some) {
                Ok(ring) => return ring,
                Err(_) => yield_now(),
            }
        }
    }

    /// The caller's steps 2 and 3.
    #[cold]
    fn leave_note(&self, note: Note) -> Submitted {
        // ORDERING: Relaxed, a count for people.
        self.handed_over.fetch_add(1, Ordering::Relaxed);
        self.inbox.push(note);
        let word = self.latch.word().add(NOTE);
        if word & HELD == 0
            && let Ok(ring) = self.latch.try_hold(Some)
        {
            self.leave(ring, Afterwards::default(), None);
        }
        if word & CLOSED != 0 { Submitted::ClosedLate } else { Submitted::Accepted }
    }

    /// The holder's way out. `out` is where `stop` collects.
    #[inline]
    fn leave(&self, ring: Hold<'_, EntryWheel>, mut after: Afterwards, mut out: Option<&mut Vec<Arc<dyn AnyEntry>>>) {
        let mut ring = ring;
        while let Err(held) = ring.release(|word| (word & !(CLOSED | HELD) == 0).then_some(word)) {
            ring = held;
            self.answer(&mut ring, &mut after, out.as_deref_mut());
        }
        if let Some(tick) = after.wake_before {
            self.context.alarm.wake_before(tick);
        }
    }

    /// The holder's step 2.
    #[cold]
    fn answer(
        &self,
        ring: &mut Hold<'_, EntryWheel>,
        after: &mut Afterwards,
        out: Option<&mut Vec<Arc<dyn AnyEntry>>>,
    ) {
        let word = ring.word().load();
        if word & CLOSED == 0 {
            self.read_inbox(ring, after);
        } else if let Some(out) = out {
            while let Some(note) = self.inbox.pop() {
                out.push(note.entry);
            }
        } else {
            while let Some(note) = self.inbox.pop() {
                after.unlinked.push(note.entry);
            }
        }
        if word & POKED != 0 {
            after.wake_before = Some(IMMEDIATE);
        }
        let counted = (word & !(NOTE - 1)) | (word & POKED);
        let answered = ring.word().update(|now| Some(now - counted));
        debug_assert!(answered.is_ok());
    }

    fn read_inbox(&self, ring: &mut Hold<'_, EntryWheel>, after: &mut Afterwards) {
        while let Some(note) = self.inbox.pop() {
            self.reconcile(ring, note, after);
        }
    }

    /// Makes the wheel agree with the entry's state word.
    fn reconcile(&self, ring: &mut Hold<'_, EntryWheel>, note: Note, after: &mut Afterwards) {
        let Note { entry, tick } = note;
        let head = entry.head();
        let waits = entry.word().is_waiting();
        match ring.deadline(head.spot()) {
            None if waits => self.link(ring, entry, tick, after),
            Some(linked) if !waits || tick < linked => {
                let unlinked = ring.remove(head.spot());
                head.set_spot(Spot::NONE);
                after.unlinked.extend(unlinked);
                if waits {
                    self.link(ring, entry, tick, after);
                } else {
                    after.unlinked.push(entry);
                }
            }
            _ => after.unlinked.push(entry),
        }
    }

    #[inline]
    fn link(&self, ring: &mut Hold<'_, EntryWheel>, entry: Arc<dyn AnyEntry>, tick: u64, after: &mut Afterwards) {
        ring.insert(tick, entry);
        // ORDERING: Relaxed load, only the holder writes it. The store is published by the latch's release and, for the
        // sleeper, by the alarm's word.
        if tick < self.next.load(Ordering::Relaxed) {
            self.next.store(tick, Ordering::Relaxed);
            after.wake_before = Some(after.wake_before.map_or(tick, |earlier| earlier.min(tick)));
        }
    }

    /// Sets `next` to what the wheel says.
    fn publish(&self, ring: &Hold<'_, EntryWheel>) {
        let next = if ring.has_overdue() { IMMEDIATE } else { ring.next_expiry().unwrap_or(NO_TICK) };
        // ORDERING: Relaxed, as in `link`.
        self.next.store(next, Ordering::Relaxed);
    }
}
