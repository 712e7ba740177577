//! Collecting messages into a batch.

use super::divide::{Waited, ends};
use super::head::IdHasher;
use super::{Answer, Ended, Message, NewTimeout, Reply, Request};
use crate::TimeoutId;
use crate::error::Error;
use crate::store::{Micros, StoreError};
use crate::transaction::{Answers, Batch, Changed, IfPending, Insert, Inserted, Requeue, Reset, Target};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

/// The number of payload bytes from which no part is added to a batch. The last payload may exceed
/// the limit.
const MAX_BYTES: usize = 16 << 20;

/// The part of a batch that a call has become, and the way back to the caller.
pub(super) struct Call {
    pub(super) part: Part,
    pub(super) index: usize,
    id: Option<TimeoutId>,
    refuses: bool,
    reply: Reply,
}

#[derive(Clone, Copy)]
pub(super) enum Part {
    Insert,
    Reset,
    Cancel,
    Requeue,
    Purge,
}

/// A timeout or a key that a message is about. A key is represented by its hash. If two keys have
/// the same hash, a message waits for the next turn without need.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Id(TimeoutId),
    Key(u64),
}

impl Place {
    fn key(topic: &str, key: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (topic, key).hash(&mut hasher);
        Self::Key(hasher.finish())
    }

    fn target(target: &Target) -> Self {
        match target {
            Target::Id(id) => Self::Id(*id),
            Target::Key { topic, key } => Self::key(topic, key),
        }
    }

    /// Returns the places of a message, which are at most two.
    fn of(message: &Message) -> [Option<Self>; 2] {
        match message {
            Message::Ended(ended) => [Some(Self::Id(ended.id)), None],
            Message::Call(request, _) => Self::of_request(request),
            _ => [None, None],
        }
    }

    fn of_request(request: &Request) -> [Option<Self>; 2] {
        match request {
            // No other message can be about an id that is made here.
            Request::Insert(new) => [new.id.map(Self::Id), new.key.as_ref().map(|key| Self::key(&new.topic, key))],
            Request::Reset(target, _) | Request::Cancel(target) => [Some(Self::target(target)), None],
            Request::Requeue(id) | Request::Purge(id) => [Some(Self::Id(*id)), None],
        }
    }
}

/// Messages that wait for a later batch, because the present one has their timeout already. Those
/// about one timeout keep their order. A batch takes one of each, so the work of a turn does not
/// grow with the number of messages about a busy timeout.
#[derive(Default)]
pub(super) struct Held {
    queues: HashMap<Place, VecDeque<Message>>,
    order: VecDeque<Place>,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the number of timeouts and keys with messages.
    pub(super) fn places(&self) -> usize {
        self.order.len()
    }

    /// Returns the place at which earlier messages about the same timeout wait.
    pub(super) fn place_of(&self, message: &Message) -> Option<Place> {
        if self.is_empty() {
            return None;
        }
        Place::of(message).into_iter().flatten().find(|place| self.queues.contains_key(place))
    }

    pub(super) fn push(&mut self, place: Place, message: Message) {
        self.queue(place).push_back(message);
    }

    /// Puts back a message that was popped.
    pub(super) fn put_back(&mut self, place: Place, message: Message) {
        self.queue(place).push_front(message);
    }

    fn queue(&mut self, place: Place) -> &mut VecDeque<Message> {
        self.queues.entry(place).or_insert_with(|| {
            self.order.push_back(place);
            VecDeque::new()
        })
    }

    /// Removes the first message of the place whose turn it is.
    pub(super) fn pop(&mut self) -> Option<(Place, Message)> {
        let place = self.order.pop_front()?;
        let queue = self.queues.get_mut(&place)?;
        let message = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&place);
        } else {
            self.order.push_back(place);
        }
        Some((place, message))
    }
}

/// A batch that is being collected.
///
/// No id and no key occurs twice in it, because a store may execute all parts at once. A second
/// message with the same id or key waits for the next batch.
#[derive(Default)]
pub(super) struct Collection {
    pub(super) batch: Batch,
    pub(super) calls: Vec<Call>,
    /// The ends in the batch, to be written again if the commit fails.
    pub(super) ends: Vec<Ended>,
    /// The time that its parts have spent aside.
    pub(super) waited: Waited,
    places: Places,
    bytes: usize,
}

/// The places of the parts of a batch.
#[derive(Default)]
struct Places {
    ids: HashSet<TimeoutId, BuildHasherDefault<IdHasher>>,
    keys: HashSet<u64>,
}

impl Places {
    /// Adds a place. Returns `false` if the set has it already.
    fn insert(&mut self, place: Place) -> bool {
        match place {
            Place::Id(id) => self.ids.insert(id),
            Place::Key(key) => self.keys.insert(key),
        }
    }

    fn contains(&self, place: &Place) -> bool {
        match place {
            Place::Id(id) => self.ids.contains(id),
            Place::Key(key) => self.keys.contains(key),
        }
    }
}

impl Collection {
    /// Reserves a timeout for this batch. Returns `false` if it occurs in the batch already.
    pub(super) fn reserve(&mut self, id: TimeoutId) -> bool {
        self.places.insert(Place::Id(id))
    }

    /// Reserves the timeouts of the parts of this batch, and no others.
    pub(super) fn reserve_parts(&mut self) {
        let batch = &self.batch;
        let ids = batch.inserts.iter().map(|part| part.id).chain(batch.requeues.iter().map(|part| part.id));
        let ids = ids.chain(batch.purges.iter().chain(&batch.begins).copied()).chain(ends(batch)).map(Place::Id);
        let keys = batch.inserts.iter().filter_map(|part| Some(Place::key(&part.topic, part.key.as_ref()?)));
        let targets = batch.resets.iter().map(|part| &part.target).chain(&batch.cancels).map(Place::target);
        self.places = Places::default();
        ids.chain(keys).chain(targets).for_each(|place| _ = self.places.insert(place));
    }

    /// Returns `true` if the batch can take another part.
    pub(super) fn has_room(&self, max_batch: usize) -> bool {
        self.batch.len() < max_batch && self.bytes < MAX_BYTES
    }

    /// Returns the place at which the message has to wait, if it is about a timeout that occurs in
    /// the batch already.
    pub(super) fn conflict(&self, message: &Message) -> Option<Place> {
        Place::of(message).into_iter().flatten().find(|place| self.places.contains(place))
    }

    /// Adds a call to the batch.
    pub(super) fn add(&mut self, request: Request, reply: Reply, now: Micros, instance: u32) {
        let places = Place::of_request(&request).into_iter().flatten();
        places.for_each(|place| _ = self.places.insert(place));
        let mut refuses = false;
        let (part, index, id) = match request {
            Request::Insert(new) => {
                refuses = new.if_pending == IfPending::Refuse;
                self.bytes += new.payload.len();
                let insert = insert(*new, now, instance);
                let id = insert.id;
                self.batch.inserts.push(insert);
                (Part::Insert, self.batch.inserts.len(), Some(id))
            }
            Request::Reset(target, when) => {
                self.batch.resets.push(Reset { target, due: when.from(now) });
                (Part::Reset, self.batch.resets.len(), None)
            }
            Request::Cancel(target) => {
                self.batch.cancels.push(target);
                (Part::Cancel, self.batch.cancels.len(), None)
            }
            Request::Requeue(id) => {
                self.batch.requeues.push(Requeue { id, due: now });
                (Part::Requeue, self.batch.requeues.len(), None)
            }
            Request::Purge(id) => {
                self.batch.purges.push(id);
                (Part::Purge, self.batch.purges.len(), None)
            }
        };
        self.calls.push(Call { part, index: index - 1, id, refuses, reply: reply.about(id) });
    }
}

fn insert(new: NewTimeout, now: Micros, instance: u32) -> Insert {
    let id = new.id.unwrap_or_else(|| TimeoutId::made_by(instance));
    Insert {
        key: new.key,
        if_pending: new.if_pending,
        format: new.format,
        payload: new.payload,
        period: new.period,
        max_lateness: new.max_lateness,
        ..Insert::new(id, new.when.from(now), new.topic)
    }
}

impl Call {
    /// Answers the caller after the commit.
    pub(super) fn answer(self, answers: &Answers) {
        let changed = |changed: Changed| match changed {
            Changed::Changed(_) => Answer::Changed,
            Changed::Running => Answer::Running,
            Changed::Unknown => Answer::Unknown,
        };
        let found = |found: bool| if found { Answer::Changed } else { Answer::Unknown };
        let answer = match self.part {
            Part::Insert => match (&answers.inserts[self.index], self.id) {
                (Inserted::Created { .. } | Inserted::Exists, Some(id)) => Ok(Answer::Scheduled(id)),
                (Inserted::Kept(id), _) if self.refuses => Err(Error::KeyTaken { id: *id }),
                (Inserted::Kept(id) | Inserted::Moved(id, _), _) => Ok(Answer::Scheduled(*id)),
                (Inserted::TooOld, _) => Err(Error::IdTooOld),
                // The keeper has taken these inserts out of the batch.
                (Inserted::Locked, _) => Err(Error::Store(StoreError::Locked(Vec::new()))),
                (Inserted::Refused(why), _) => Err(Error::Store(StoreError::Refused(why.clone()))),
                (_, None) => Ok(Answer::Unknown),
            },
            Part::Reset => Ok(changed(answers.resets[self.index])),
            Part::Cancel => Ok(changed(answers.cancels[self.index])),
            Part::Requeue => Ok(found(answers.requeues[self.index])),
            Part::Purge => Ok(found(answers.purges[self.index])),
        };
        self.reply.send(answer);
    }

    /// Tells the caller that the commit has failed.
    pub(super) fn fail(self, error: &StoreError) {
        let error = match error {
            StoreError::InDoubt(why) => Error::OutcomeUnknown { id: self.id, why: why.clone() },
            error => Error::Store(error.clone()),
        };
        self.reply.send(Err(error));
    }
}
