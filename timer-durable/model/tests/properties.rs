//! The promises. Some are broken by a step, which then sets a bit; the others can be seen in a
//! state.

use stateright::Property;

use crate::configurations::Protocol;
use crate::mutants::Mutant::*;
use crate::state::{History, INFINITY, NODES, OUTSIDE, Row, Slot, State, Step, has, position};
use crate::transaction::Transaction::*;

/// A promise that a single step can break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Promise {
    CancelledStaysSo,
    AttemptsGrowByOne,
    OneHandlerAtATime,
    LateResultsRefused,
    FencedWritesNothing,
    NeverEarly,
    ResetsStay,
    OneLife,
    ResultsAreKept,
    RunningIsLeftAlone,
    CallsAreQueued,
}
use Promise::*;

impl History {
    pub(crate) fn break_promise(&mut self, promise: Promise) {
        self.broken |= 1 << promise as u16;
    }

    fn kept(&self, promise: Promise) -> bool {
        self.broken & 1 << promise as u16 == 0
    }
}

/// Returns the properties of the model, with the promise of the product that each of them stands
/// for.
pub(crate) fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always("D1 an answered insert is stored", |_, s: &State| stored(s)),
        Property::always("D2 every timeout ends", |p: &Protocol, s: &State| p.ends(s)),
        Property::always("D3 attempts grow by one", |_, s: &State| s.history.kept(AttemptsGrowByOne)),
        Property::always("D3 one handler at a time", |_, s: &State| s.history.kept(OneHandlerAtATime)),
        Property::always("D5 nothing begins early", |_, s: &State| s.history.kept(NeverEarly)),
        Property::always("D8 a fenced instance writes nothing", |_, s: &State| s.history.kept(FencedWritesNothing)),
        Property::always("D8 a late result is refused", |_, s: &State| s.history.kept(LateResultsRefused)),
        Property::always("D9 nothing runs after Cancelled", |_, s: &State| s.history.kept(CancelledStaysSo)),
        Property::always("D10 one pending timeout per key", |p: &Protocol, s: &State| p.key_is_unique(s)),
        Property::always("D10 a call beside an attempt is queued", |_, s: &State| s.history.kept(CallsAreQueued)),
        Property::always("D10 one queued call, beside an attempt", |p: &Protocol, s: &State| p.queue_is_short(s)),
        Property::always("D10 one life per id", |_, s: &State| s.history.kept(OneLife)),
        Property::always("D11 attempts are limited", |p: &Protocol, s: &State| p.attempts_are_limited(s)),
        Property::always("D16 a refused insert leaves nothing", |p: &Protocol, s: &State| p.refused_is_absent(s)),
        Property::always("D3 a result in hand is not lost", |_, s: &State| s.history.kept(ResultsAreKept)),
        Property::always("D9 calls leave a running attempt alone", |_, s: &State| s.history.kept(RunningIsLeftAlone)),
        Property::always("a reset that was answered stays", |_, s: &State| s.history.kept(ResetsStay)),
        Property::always("memory holds the head", |p: &Protocol, s: &State| p.memory_is_the_head(s)),
        // Without these, a model in which nothing happens would hold.
        Property::sometimes("a timeout ends", |_, s: &State| s.history.ended != 0),
        Property::sometimes("a second attempt runs", |p: &Protocol, s: &State| {
            !p.has_faults() || s.history.begun.iter().any(|attempt| *attempt > 1)
        }),
    ]
}

/// A timeout leaves the store only by its end.
fn stored(s: &State) -> bool {
    (0..s.slots.len()).all(|id| {
        let gone = s.slots[id] == Slot::Absent && !has(s.history.ended, id);
        !(gone && (has(s.history.accepted, id) || s.history.begun[id] != 0))
    })
}

impl Protocol {
    /// Returns `true` if a second attempt is possible.
    fn has_faults(&self) -> bool {
        self.budget.retry + self.budget.lapse > 0 || self.budget.crash.min(self.budget.start) > 0
    }

    fn key_is_unique(&self, s: &State) -> bool {
        self.if_pending.is_empty() || (0..self.rows).filter(|id| s.live(*id).is_some()).count() < 2
    }

    /// At most one call is queued, and the attempt of its key has begun.
    fn queue_is_short(&self, s: &State) -> bool {
        let is_queued = |id: &usize| matches!(s.slots[*id], Slot::Queued(..));
        let begun = (0..self.rows).any(|id| s.live(id).is_some_and(|row| row.epoch != 0));
        (0..self.rows).filter(is_queued).count() <= usize::from(begun)
    }

    fn attempts_are_limited(&self, s: &State) -> bool {
        (0..self.rows).all(|id| s.live(id).is_none_or(|row| s.history.begun[id] - row.forgiven <= self.attempts))
    }

    fn refused_is_absent(&self, s: &State) -> bool {
        let repeated = self.caller_ids || self.budget.repeat > 0;
        repeated || (0..self.rows).all(|id| !has(s.history.refused, id) || s.live(id).is_none())
    }

    /// The invariant of the design for a node that has applied all answers. Every pending row of
    /// its shards before the bound is in memory. No entry beyond the bound takes the place of one
    /// before it.
    fn memory_is_the_head(&self, s: &State) -> bool {
        s.nodes.iter().filter(|node| node.up && node.step == Step::Idle && s.is_alive(node.instance)).all(|node| {
            let in_head = |id: usize| node.memory[id] == 0 || position(node.memory[id], id) < node.bound;
            let is_held = |id: usize, row: Row| {
                let epoch = node.own[row.shard as usize];
                let mine = epoch != 0 && s.shards[row.shard as usize] == (node.instance, epoch);
                let pending = row.epoch < epoch && !row.foreign && position(row.due, id) < node.bound;
                let runs_here = node.running[id] != 0;
                !(mine && pending) || node.memory[id] == row.due || runs_here
            };
            (0..self.rows).all(|id| in_head(id) && s.live(id).is_none_or(|row| is_held(id, row)))
        })
    }

    /// Returns `true` if the nodes that are left end every timeout once the faults stop.
    ///
    /// A fair continuation of the state is played: transactions under way are executed, leases of
    /// dead instances lapse, nodes rejoin, begin, and finish. A node that is down stays down unless
    /// it is the only one.
    fn ends(&self, s: &State) -> bool {
        let quiet = s.nodes.iter().all(|node| !node.up || matches!(node.step, Step::Idle | Step::Broken));
        let nothing = (0..self.rows).all(|id| s.live(id).is_none());
        if !quiet || (nothing && s.late.is_none()) {
            return true;
        }
        let mut s = s.clone();
        if let Some((instance, transaction)) = s.late.take() {
            self.execute(&mut s, instance, transaction);
        }
        s.now = self.last_due;
        if !s.nodes.iter().any(|node| node.up) {
            self.rejoin(&mut s, 0);
        }
        for _ in 0..4 * self.rows + 12 {
            if (0..self.rows).all(|id| s.live(id).is_none()) {
                return s.queued().is_none();
            }
            let living = s.nodes.map(|node| if node.up { node.instance } else { OUTSIDE });
            for instance in (1..s.next_instance).filter(|instance| !living.contains(instance)) {
                s.lapsed |= 1 << instance;
            }
            for n in (0..NODES).filter(|n| s.nodes[*n].up).collect::<Vec<_>>() {
                self.play(&mut s, n);
            }
        }
        false
    }

    /// Lets one node do everything that it can do without a fault.
    fn play(&self, s: &mut State, n: usize) {
        if s.nodes[n].step == Step::Broken {
            self.rejoin(s, n);
        }
        for _ in 0..3 * self.rows + 6 {
            let retrying = s.nodes[n].retrying;
            let is_duty = |transaction: &_| match transaction {
                Retry { id, .. } => has(retrying, *id as usize),
                Bury { .. } | Release { .. } | Expire => false,
                _ => true,
            };
            let mut list = Vec::new();
            self.duties(s, n, &mut list);
            if self.is(LoadBesideKeeper) && s.nodes[n].bound != INFINITY {
                list.push(Load { from: s.nodes[n].bound });
            }
            let Some(transaction) = list.into_iter().find(is_duty) else { return };
            self.send(s, n, transaction);
            while let Step::Sent(_) = s.nodes[n].step {
                self.answer(s, n);
                self.apply(s, n);
            }
            if s.nodes[n].step != Step::Idle {
                return;
            }
        }
    }
}
