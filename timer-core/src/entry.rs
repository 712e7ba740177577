//! One timeout as the timer sees it: its state word, its task, its place in a wheel, its home.
//!
//! Ground rules:
//! - The **state word** is anybody's, by the transitions of [`crate::state`] only.
//! - The **task** belongs to whoever won it by a transition that took `HELD`. It is called and dropped with no latch held.
//! - The **spot** is written and read only by the holder of the home shard's latch.
//! - An entry never changes its home.

use crate::context::Context;
use crate::job::Job;
use crate::shard::{Shard, Submitted};
use crate::state::{Cancel, Expiry, State, Word};
use crate::sync::{Arc, AtomicU64, Held, HeldWord, Hold, Ordering};
use crate::time::{Nanos, Stamp};
use crate::timeout::Timeout;
use crate::wheel::Spot;
use timer_executor::{Runnable, panics};

/// What all entries share, whatever they run.
#[repr(C)]
pub(crate) struct Head {
    home: Arc<Shard>,
    spot: AtomicU64,
}

impl Head {
    pub(crate) fn home(&self) -> &Arc<Shard> {
        &self.home
    }

    pub(crate) fn context(&self) -> &Context {
        self.home.context()
    }

    /// Where the entry is linked, or was last. For the holder of the home's latch.
    #[inline]
    pub(crate) fn spot(&self) -> Spot {
        // ORDERING: Relaxed, only the holder of the latch gets here, and latches hand over with release and acquire.
        Spot::from_bits(self.spot.load(Ordering::Relaxed))
    }

    /// Notes where the entry is linked. For the holder of the home's latch.
    #[inline]
    pub(crate) fn set_spot(&self, spot: Spot) {
        // ORDERING: Relaxed, as in `spot`.
        self.spot.store(spot.to_bits(), Ordering::Relaxed);
    }
}

/// One timeout and its task. In this order, so that all but the task lies within 40 bytes from the counts of the `Arc` on: mostly
/// one cache line.
#[repr(C)]
pub(crate) struct Entry<J> {
    head: Head,
    job: Held<Option<J>>,
}

/// An [`Entry`] of any task.
pub(crate) trait AnyEntry: Runnable {
    fn head(&self) -> &Head;

    fn state(&self) -> &HeldWord;

    /// `Timeout::cancel`: ends it, if it has not ended. The task is dropped or told before this returns, unless it is a
    /// periodic one that runs just now: then its run does that. `handle` is a handle to this entry.
    fn cancel(&self, handle: &Timeout) -> bool;

    /// For the turn of a timer whose worker runs the tasks itself: wins an entry that has left the wheel and runs it, all in
    /// one. Comes back in `Err` if it was not due at `now`, which is the present, or has ended.
    fn run_if_due(self: Arc<Self>, now: Nanos) -> Result<(), Arc<dyn AnyEntry>>;

    /// Runs the task of an entry that `stop` has taken out; `false` if somebody has it already.
    fn run_unprocessed(&self, handle: &Timeout) -> bool;

    /// Tells and drops the task of an entry that `stop` has taken out.
    fn dispose(&self, handle: &Timeout);
}

impl dyn AnyEntry {
    /// The state word as it is now.
    #[inline]
    pub(crate) fn word(&self) -> Word {
        Word::from_bits(self.state().load())
    }

    /// For the turn: decides whether an entry that has left the wheel runs.
    pub(crate) fn expire(&self, now: Nanos) -> Expiry {
        let won = self.state().update(|word| Word::from_bits(word).expire(now).1.map(Word::to_bits));
        match won {
            Ok(_) => Expiry::Won,
            // The same decision for the word that stood in the way.
            Err(word) => Word::from_bits(word).expire(now).0,
        }
    }

    /// For `stop`: ends it and leaves the task in it; `true` if this call has ended it.
    pub(crate) fn withdraw(&self) -> bool {
        self.state().update(|word| Word::from_bits(word).withdraw().map(Word::to_bits)).is_ok()
    }
}

impl<J: Job> Entry<J> {
    pub(crate) fn new(home: Arc<Shard>, deadline: Stamp, job: J) -> Self {
        Self {
            head: Head { home, spot: AtomicU64::new(Spot::NONE.to_bits()) },
            job: Held::new(Word::new(J::WAITS_AS, deadline).to_bits(), Some(job)),
        }
    }

    /// Ends an entry that the timer would not take, and gives the task back; `None` if it has ended otherwise meanwhile.
    pub(crate) fn retract(&self) -> Option<J> {
        self.take(|word| word.cancel().map(|(_, next)| next))
    }

    /// Wins the task, and the hold with which a periodic one is given back.
    fn hold(&self, change: impl Fn(Word) -> Option<Word>) -> Option<(Hold<'_, Option<J>>, J)> {
        let change = |word| change(Word::from_bits(word)).map(Word::to_bits);
        let mut held = self.job.try_hold(change).ok()?;
        let job = held.take()?;
        Some((held, job))
    }

    /// Wins the task for good.
    fn take(&self, change: impl Fn(Word) -> Option<Word>) -> Option<J> {
        self.hold(change).map(|(_, job)| job)
    }

    fn run_once(self: Arc<Self>, job: J) {
        let timeout = Timeout::from_entry(self);
        if let Err(message) = panics::catch(|| job.run(&timeout)) {
            timeout.head().context().task_panicked(&message);
        }
    }

    /// One run of a periodic task, which `held` had.
    fn run_periodic(self: &Arc<Self>, mut held: Hold<'_, Option<J>>, job: J) {
        let due = Word::from_bits(held.word().load()).deadline().nanos();
        let timeout = Timeout::from_entry(self.clone() as Arc<dyn AnyEntry>);
        let context = self.head.context();
        match panics::catch(|| job.run(&timeout)) {
            Ok(Some((job, pace))) => {
                *held = Some(job);
                let now = context.clock.now();
                let next = Stamp::up(pace.next(due, now, context.missed_runs));
                match held.release(|word| Word::from_bits(word).rearm(next).map(Word::to_bits)) {
                    Ok(()) => self.link_again(&timeout, now),
                    Err(mut held) => {
                        // Cancelled during the run, and so dropped here: the canceller could not.
                        let job = held.take();
                        if let Err(message) = panics::catch(|| drop(job)) {
                            context.task_panicked(&message);
                        }
                    }
                }
            }
            Ok(None) => {}
            Err(message) => {
                let gave_up = held.word().update(|word| Word::from_bits(word).give_up().map(Word::to_bits)).is_ok();
                if gave_up {
                    context.give_back_place();
                    context.counters.expired.add_shared(1);
                }
                context.task_panicked(&message);
            }
        }
    }

    /// Puts a periodic entry that waits again back into its home's wheel.
    fn link_again(self: &Arc<Self>, timeout: &Timeout, now: Nanos) {
        let entry: Arc<dyn AnyEntry> = self.clone();
        let tick = self.head.context().tick_of(entry.word().deadline(), now);
        if self.head.home.submit(entry, tick) != Submitted::Accepted {
            // The timer was stopped during the run.
            if let Err(message) = panics::catch(|| self.cancel(timeout)) {
                self.head.context().task_panicked(&message);
            }
        }
    }
}

impl<J: Job> AnyEntry for Entry<J> {
    #[inline]
    fn head(&self) -> &Head {
        &self.head
    }

    #[inline]
    fn state(&self) -> &HeldWord {
        self.job.word()
    }

    fn cancel(&self, handle: &Timeout) -> bool {
        loop {
            if let Some(job) = self.retract() {
                return self.cancelled(handle, Some(job));
            }
            // It has ended, or a run of a periodic task goes on: then that run drops the task.
            let rest = |word| Word::from_bits(word).cancel().filter(|(won, _)| *won == Cancel::Rest);
            match self.job.word().update(|word| rest(word).map(|(_, next)| next.to_bits())) {
                Ok(_) => return self.cancelled(handle, None),
                Err(word) if Word::from_bits(word).cancel().is_none() => return false,
                // The run has ended between the two looks.
                Err(_) => {}
            }
        }
    }

    fn run_if_due(self: Arc<Self>, now: Nanos) -> Result<(), Arc<dyn AnyEntry>> {
        let Some((held, job)) = self.hold(|word| word.expire(now).1) else { return Err(self) };
        self.head.context().handed_over(Word::from_bits(held.word().load()), now);
        match J::WAITS_AS {
            State::Repeating => self.run_periodic(held, job),
            _ => self.run_once(job),
        }
        Ok(())
    }

    fn run_unprocessed(&self, handle: &Timeout) -> bool {
        match self.take(Word::dispose) {
            Some(job) => {
                // A periodic task runs this once and is dropped.
                drop(job.run(handle));
                true
            }
            None => false,
        }
    }

    fn dispose(&self, handle: &Timeout) {
        if let Some(job) = self.take(Word::dispose) {
            job.cancelled(handle);
        }
    }
}

impl<J: Job> Entry<J> {
    /// After winning a cancel: first the accounts and the wheel, then user code.
    fn cancelled(&self, handle: &Timeout, job: Option<J>) -> bool {
        let context = self.head.context();
        context.give_back_place();
        self.head.home.unlink_cancelled(handle);
        if let Some(job) = job {
            job.cancelled(handle);
        }
        true
    }
}

impl<J: Job> Runnable for Entry<J> {
    fn run(self: Arc<Self>) {
        if let Some((held, job)) = self.hold(Word::run) {
            match J::WAITS_AS {
                State::Repeating => self.run_periodic(held, job),
                _ => self.run_once(job),
            }
        }
    }

    fn abandoned(self: Arc<Self>) {
        let entry: Arc<dyn AnyEntry> = self;
        let context_of = entry.clone();
        context_of.head().context().adopt(entry);
    }
}
