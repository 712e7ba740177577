//! A value behind a latch, and an inbox for those who find the latch taken: the hand-over between callers.
//!
//! Nobody ever waits here. Whoever finds the latch taken posts a note, and the latch's holder reads it before leaving. The
//! latch word decides both:
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
//! 1. tries to turn `HELD` on ([`Inbox::enter`]). If that succeeds it is the holder: it changes the value and leaves (below).
//! 2. Else it pushes its note, **then** adds 1 to the count ([`Inbox::post`]).
//! 3. If the word it added to had `HELD`, it is done. If not, the holder has left in between: the caller tries step 1 once
//!    more, with nothing to do but to leave. (If somebody else is faster, that holder sees the count.)
//!
//! The holder, leaving ([`Inbox::leave`]):
//!
//! 1. tries to turn `HELD` off, which it may only in a word whose count is 0 and that is not `POKED`. If that succeeds it is out.
//! 2. Else it reads all notes, takes the count it saw (and `POKED`) off the word, and begins again.
//!
//! *The race*: a caller adds while the holder leaves. *Proof that no note is stranded*: both change the one word by
//! read-modify-writes, so the two have an order. If the caller's addition comes first, the holder's step 1 fails, and
//! because the push came before the addition (Release) and the holder's look after it (Acquire), step 2 finds the note.
//! If the holder's step 1 comes first, the caller sees in step 3 that `HELD` is off and reads the note itself. Notes are
//! read to the last one there is, so one that is pushed but not yet counted may be read early; its count then finds
//! nothing, which is harmless as long as reading a note twice would be: a note says "look at this", not "do this".
//!
//! Somebody who must have the value, finds the latch taken and has other things to do turns `POKED` on ([`Inbox::poke`]); the
//! holder's [`leave`](Inbox::leave) tells it to answer. `CLOSED` is set by a holder, for good; whoever sees it in step 1 or in
//! the word of step 2 knows that the note may never be read.

use crate::sync::{HELD, Held, Hold, Queue, yield_now};

const POKED: u64 = 1 << 1;
const CLOSED: u64 = 1 << 2;
const NOTE: u64 = 1 << 3;

/// The value, its latch and its inbox.
pub(crate) struct Inbox<T, N> {
    latch: Held<T>,
    notes: Queue<N>,
}

/// What the caller's step 1 has found.
#[must_use]
pub(crate) enum Entered<'a, T> {
    /// The latch was free: the caller is the holder and must [`leave`](Inbox::leave).
    Holder(Hold<'a, T>),
    /// Somebody holds it: [`post`](Inbox::post) a note.
    Taken,
    /// Closed for new work.
    Closed,
}

/// What the caller's steps 2 and 3 have found.
#[must_use]
pub(crate) struct Posted<'a, T> {
    /// The inbox was closed when the note was counted: perhaps nobody reads it as news.
    pub(crate) closed: bool,
    /// The holder had left: the caller is the holder now, and must [`leave`](Inbox::leave).
    pub(crate) holder: Option<Hold<'a, T>>,
}

impl<T, N> Inbox<T, N> {
    pub(crate) fn new(value: T) -> Self {
        Self { latch: Held::new(0, value), notes: Queue::new() }
    }

    /// The caller's step 1, with new work.
    #[inline]
    pub(crate) fn enter(&self) -> Entered<'_, T> {
        match self.latch.try_hold(|word| (word & CLOSED == 0).then_some(word)) {
            Ok(hold) => Entered::Holder(hold),
            Err(word) if word & CLOSED != 0 => Entered::Closed,
            Err(_) => Entered::Taken,
        }
    }

    /// The caller's step 1, to settle what is there already: closing does not keep it out. `None` if the latch is taken.
    #[inline]
    pub(crate) fn enter_to_settle(&self) -> Option<Hold<'_, T>> {
        self.latch.try_hold(Some).ok()
    }

    /// Waits for the latch, which nobody holds for long. For those who end things or drive them by hand, not for callers.
    pub(crate) fn enter_patiently(&self) -> Hold<'_, T> {
        loop {
            match self.enter_to_settle() {
                Some(hold) => return hold,
                None => yield_now(),
            }
        }
    }

    /// The caller's steps 2 and 3.
    #[cold]
    pub(crate) fn post(&self, note: N) -> Posted<'_, T> {
        self.notes.push(note);
        let word = self.latch.word().add(NOTE);
        let holder = if word & HELD == 0 { self.enter_to_settle() } else { None };
        Posted { closed: word & CLOSED != 0, holder }
    }

    /// Reads the notes that are there, without leaving.
    pub(crate) fn read_notes(&self, hold: &mut Hold<'_, T>, mut read: impl FnMut(&mut T, N)) {
        while let Some(note) = self.notes.pop() {
            read(hold, note);
        }
    }

    /// The holder's way out; `read` is told of each note, and whether the inbox is closed. Returns whether somebody has
    /// poked meanwhile and is to be answered.
    #[inline]
    pub(crate) fn leave(&self, hold: Hold<'_, T>, mut read: impl FnMut(&mut T, N, bool)) -> bool {
        let mut hold = hold;
        let mut poked = false;
        while let Err(held) = hold.release(|word| (word & !(CLOSED | HELD) == 0).then_some(word)) {
            hold = held;
            poked |= self.answer(&mut hold, &mut read);
        }
        poked
    }

    /// The holder's step 2.
    #[cold]
    fn answer(&self, hold: &mut Hold<'_, T>, read: &mut impl FnMut(&mut T, N, bool)) -> bool {
        let word = hold.word().load();
        let closed = word & CLOSED != 0;
        self.read_notes(hold, |value, note| read(value, note, closed));
        let seen = word & !(CLOSED | HELD);
        // Nobody else takes anything off, so this cannot underflow.
        let _ = hold.word().update(|now| Some(now - seen));
        word & POKED != 0
    }

    /// Asks the holder for an answer; `false` if nobody holds the latch any more.
    pub(crate) fn poke(&self) -> bool {
        self.latch.word().update(|word| (word & HELD != 0).then_some(word | POKED)).is_ok()
    }

    /// Whether a poke waits for its answer.
    pub(crate) fn is_poked(&self) -> bool {
        self.latch.word().load() & POKED != 0
    }

    /// Whether no note is unread and no poke unanswered.
    pub(crate) fn is_settled(&self) -> bool {
        self.latch.word().load() & !(CLOSED | HELD) == 0
    }

    /// Closes it for new work, for good. The hold shows that the caller may.
    pub(crate) fn close(&self, hold: &Hold<'_, T>) {
        let _ = hold.word().update(|word| Some(word | CLOSED));
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests {
    use super::*;

    fn holder<'a>(inbox: &'a Inbox<Vec<i32>, i32>) -> Hold<'a, Vec<i32>> {
        match inbox.enter() {
            Entered::Holder(hold) => hold,
            _ => panic!("the latch is free"),
        }
    }

    #[test]
    fn the_holder_reads_what_was_posted_meanwhile_before_it_leaves() {
        let inbox = Inbox::new(Vec::new());
        let hold = holder(&inbox);
        assert!(matches!(inbox.enter(), Entered::Taken));
        for note in [1, 2] {
            let posted = inbox.post(note);
            assert!(!posted.closed && posted.holder.is_none());
        }
        assert!(!inbox.leave(hold, |read, note, _| read.push(note)));
        assert_eq!(*holder(&inbox), [1, 2]);
    }

    #[test]
    fn whoever_posts_to_a_free_latch_reads_the_note_itself() {
        let inbox = Inbox::new(Vec::new());
        let posted = inbox.post(7);
        inbox.leave(posted.holder.unwrap(), |read, note, _| read.push(note));
        assert_eq!(*holder(&inbox), [7]);
    }

    #[test]
    fn a_poke_is_answered_once_and_only_by_a_holder() {
        let inbox: Inbox<Vec<i32>, i32> = Inbox::new(Vec::new());
        assert!(!inbox.poke(), "nobody is there to answer");
        let hold = holder(&inbox);
        assert!(inbox.poke() && inbox.is_poked());
        assert!(inbox.leave(hold, |_, _, _| {}));
        assert!(!inbox.is_poked());
        assert!(!inbox.leave(holder(&inbox), |_, _, _| {}));
    }

    #[test]
    fn a_closed_inbox_takes_no_new_work_but_lets_what_is_there_be_settled() {
        let inbox = Inbox::new(Vec::new());
        let hold = holder(&inbox);
        inbox.close(&hold);
        let posted = inbox.post(1);
        assert!(posted.closed && posted.holder.is_none());
        inbox.leave(hold, |read, note, closed| {
            assert!(closed);
            read.push(note);
        });
        assert!(matches!(inbox.enter(), Entered::Closed));
        assert_eq!(*inbox.enter_to_settle().unwrap(), [1]);
    }
}
