//! The transitions: which actions a state allows, and the state that each of them leads to.

use stateright::{Model, Property};

use crate::action::Action::{self, *};
use crate::configurations::Protocol;
use crate::mutants::Mutant::*;
use crate::properties;
use crate::state::{Budget, History, Node, OUTSIDE, ROWS, SHARDS, Slot, State, Step, has};
use crate::transaction::{Answer, IfPending, Transaction::*};

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        // An exclusive store has one node, which owns everything. Otherwise each node has one
        // shard.
        let owner = |shard: usize| if self.exclusive { 1 } else { shard as u8 + 1 };
        let shards = std::array::from_fn(|shard| (owner(shard), 1));
        let node = |n: usize| {
            let own = shards.map(|(owner, epoch)| if owner == n as u8 + 1 { epoch } else { 0 });
            Node { up: n < self.nodes(), ..Node::fresh(n as u8 + 1, own) }
        };
        vec![State {
            now: 0,
            slots: [Slot::Absent; ROWS],
            birth: [0; ROWS],
            maker: [OUTSIDE; ROWS],
            shards,
            opened: 1,
            alive: if self.exclusive { 0b010 } else { 0b110 },
            lapsed: 0,
            next_instance: self.nodes() as u8 + 1,
            nodes: std::array::from_fn(node),
            late: None,
            left: self.budget,
            history: History::default(),
        }]
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        if s.now < self.last_due {
            actions.push(Tick);
        }
        self.client_actions(s, actions);
        if s.late.is_some() {
            actions.push(ExecuteLate);
        }
        for n in 0..self.nodes() {
            self.fault_actions(s, n, actions);
            if s.nodes[n].up && s.nodes[n].step == Step::Idle {
                for transaction in self.transactions(s, n) {
                    actions.push(Do(n as u8, transaction));
                    if s.left.pause > 0 {
                        actions.push(Send(n as u8, transaction));
                    }
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut s = last.clone();
        match action {
            Tick => s.now += 1,
            ClientInserts { id, due, shard } => {
                s.left.foreign -= 1;
                self.make_id(&mut s, id as usize, OUTSIDE);
                let insert = Insert { id, due, shard, foreign: true, if_pending: IfPending::Keep };
                if self.execute(&mut s, OUTSIDE, insert) == Answer::Done {
                    s.history.accepted |= 1 << id;
                }
            }
            ClientLosesInsert { id, due, shard } => {
                s.left.foreign -= 1;
                s.left.broken -= 1;
                self.make_id(&mut s, id as usize, OUTSIDE);
                let insert = Insert { id, due, shard, foreign: true, if_pending: IfPending::Keep };
                s.late = Some((OUTSIDE, insert));
                s.history.unknown |= 1 << id;
            }
            ClientResets { id, due } => {
                s.left.reset -= 1;
                self.execute(&mut s, OUTSIDE, Reset { id, due, shard: 0 });
            }
            ClientCancels { id } => {
                s.left.cancel -= 1;
                if let Answer::Changed(id) = self.execute(&mut s, OUTSIDE, Cancel { id }) {
                    s.history.cancelled |= 1 << id;
                }
            }
            Do(n, transaction) => {
                self.send(&mut s, n as usize, transaction);
                self.finish(&mut s, n as usize);
            }
            Send(n, transaction) => {
                s.left.pause -= 1;
                self.send(&mut s, n as usize, transaction);
            }
            Finish(n) => self.finish(&mut s, n as usize),
            Execute(n) => {
                s.left.delay -= 1;
                self.answer(&mut s, n as usize);
            }
            Apply(n) => self.apply(&mut s, n as usize),
            Lapse(n) => {
                let node = &mut s.nodes[n as usize];
                s.left.lapse -= u8::from(node.up);
                s.lapsed |= node.tried | 1 << node.instance;
                node.lease = false;
            }
            Crash(n) => {
                s.left.crash -= 1;
                self.leave_under_way(&mut s, n as usize);
                let before = s.nodes[n as usize];
                s.history.finished &= !before.ended;
                let gone = Node::fresh(before.instance, [0; SHARDS]);
                s.nodes[n as usize] = Node { up: false, lease: false, ..gone };
            }
            Restart(n) | Rejoin(n) => {
                s.left.start -= 1;
                self.rejoin(&mut s, n as usize);
            }
            RejoinInVain(n) => {
                s.left.start -= 1;
                s.left.broken -= 1;
                self.rejoin_in_vain(&mut s, n as usize);
            }
            Break(n) => self.break_connection(&mut s, n as usize),
            ExecuteLate => {
                if let Some((instance, transaction)) = s.late.take() {
                    self.execute(&mut s, instance, transaction);
                }
            }
            ReadPage(n) => {
                let node = &s.nodes[n as usize];
                let Answer::Rows(page, bound) = self.load(&s, node.instance, node.bound) else { return None };
                s.nodes[n as usize].page = Some((page, bound));
            }
            ApplyPage(n) => {
                let mut node = s.nodes[n as usize];
                let (page, bound) = node.page.take()?;
                self.put_page(&mut node, page, bound);
                s.nodes[n as usize] = node;
            }
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl Protocol {
    /// Returns the id that the next insert takes. Ids are taken in order, because their names do
    /// not matter.
    pub(crate) fn unused_id(&self, s: &State) -> Option<usize> {
        (0..self.rows).find(|id| s.birth[*id] == 0)
    }

    fn client_actions(&self, s: &State, actions: &mut Vec<Action>) {
        let dues = 1..=self.last_due;
        let Budget { foreign, reset, cancel, broken, .. } = s.left;
        if let Some(id) = self.unused_id(s).filter(|_| foreign > 0) {
            for due in dues.clone() {
                for shard in 0..SHARDS as u8 {
                    actions.push(ClientInserts { id: id as u8, due, shard });
                    if self.late && broken > 0 && s.late.is_none() {
                        actions.push(ClientLosesInsert { id: id as u8, due, shard });
                    }
                }
            }
        }
        if self.budget.foreign == 0 {
            return;
        }
        for (id, row) in (0..self.rows).filter_map(|id| s.live(id).map(|row| (id as u8, row))) {
            if reset > 0 {
                actions.extend(dues.clone().filter(|due| *due != row.due).map(|due| ClientResets { id, due }));
            }
            if cancel > 0 {
                actions.push(ClientCancels { id });
            }
        }
    }

    fn fault_actions(&self, s: &State, n: usize, actions: &mut Vec<Action>) {
        let node = &s.nodes[n];
        let left = &s.left;
        let index = n as u8;
        let has_lapsed = has(s.lapsed, node.instance as usize);
        if !node.up {
            if left.start > 0 {
                actions.push(Restart(index));
            }
            if !self.exclusive && s.is_alive(node.instance) && !has_lapsed {
                actions.push(Lapse(index));
            }
            return;
        }
        if left.crash > 0 {
            actions.push(Crash(index));
        }
        if left.lapse > 0 && !has_lapsed {
            actions.push(Lapse(index));
        }
        if self.is(LoadBesideKeeper) && node.step == Step::Idle {
            actions.push(if node.page.is_some() { ApplyPage(index) } else { ReadPage(index) });
        }
        let breaks = left.broken > 0 && (!self.late || s.late.is_none());
        match node.step {
            Step::Idle => {}
            Step::Sent(_) => {
                actions.push(Finish(index));
                if left.delay > 0 {
                    actions.push(Execute(index));
                }
                if breaks {
                    actions.push(Break(index));
                }
            }
            Step::Answered(..) => {
                // An attempt is not handed to its handler while the lease is over.
                let held = self.is_held(s, n);
                if !held {
                    actions.push(Apply(index));
                } else if left.start > 0 {
                    actions.push(Rejoin(index));
                }
                if breaks {
                    actions.push(Break(index));
                }
            }
            Step::Broken if left.start > 0 => {
                actions.push(Rejoin(index));
                if left.broken > 0 && !self.exclusive {
                    actions.push(RejoinInVain(index));
                }
            }
            Step::Broken => {}
        }
    }

    /// Returns `true` if the answer is an attempt that the node must not start, because its lease
    /// is over.
    pub(crate) fn is_held(&self, s: &State, n: usize) -> bool {
        let node = &s.nodes[n];
        let attempt = matches!(node.step, Step::Answered(Begin { .. }, Answer::Attempt(_)));
        attempt && !node.lease && !self.is(StartWithoutLease)
    }

    pub(crate) fn answer(&self, s: &mut State, n: usize) {
        let Step::Sent(transaction) = s.nodes[n].step else { return };
        let instance = s.nodes[n].instance;
        let answer = self.execute(s, instance, transaction);
        s.nodes[n].step = Step::Answered(transaction, answer);
    }

    pub(crate) fn finish(&self, s: &mut State, n: usize) {
        self.answer(s, n);
        if !self.is_held(s, n) {
            self.apply(s, n);
        }
    }

    /// A transaction that was sent may still be executed, unless the store dies with the process.
    fn leave_under_way(&self, s: &mut State, n: usize) {
        if let Step::Sent(transaction) = s.nodes[n].step {
            if self.late && s.late.is_none() {
                s.late = Some((s.nodes[n].instance, transaction));
            }
            if let Insert { id, .. } = transaction {
                s.history.unknown |= 1 << id;
            }
        }
    }

    fn break_connection(&self, s: &mut State, n: usize) {
        s.left.broken -= 1;
        self.leave_under_way(s, n);
        if let Step::Sent(Insert { id, .. }) | Step::Answered(Insert { id, .. }, _) = s.nodes[n].step {
            s.history.unknown |= 1 << id;
            if self.is(LostAnswerIsFailure) {
                s.history.refused |= 1 << id;
            }
            if self.is(LostAnswerIsSuccess) {
                s.history.accepted |= 1 << id;
            }
        }
        if self.is(GoesOnAfterBreak) {
            s.nodes[n].step = Step::Idle;
        } else {
            s.nodes[n].step = Step::Broken;
        }
    }

    pub(crate) fn make_id(&self, s: &mut State, id: usize, maker: u8) {
        if s.birth[id] == 0 {
            s.birth[id] = s.now + 1;
            s.maker[id] = if self.caller_ids { OUTSIDE } else { maker };
        }
    }
}
