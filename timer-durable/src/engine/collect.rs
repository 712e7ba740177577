//! Collecting messages into a batch, and dividing a batch that the store does not accept.

use super::id_map::IdHasher;
use crate::TimeoutId;
use crate::answer::ScheduleAnswer;
use crate::error::Error;
use crate::message::{Answer, AttemptEnd, Message, Reply, Request};
use crate::new_timeout::NewTimeout;
use crate::store::{Micros, StoreError};
use crate::transaction::{IfPending, Insert, Operation, Outcome, Target};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// The number of payload bytes from which no operation is added to a batch. The last payload may
/// exceed the limit.
const MAX_BYTES: usize = 16 << 20;

/// The message from which an operation comes.
pub(super) enum Origin {
    /// A call, with the way back to the caller.
    Call(Reply),
    /// The end of an attempt. It is written again if the commit fails.
    End(AttemptEnd),
    /// A timeout that follows an attempt which a transaction of the user has ended. It is written
    /// again if the commit fails.
    FollowUp,
    /// A timeout in memory is due.
    Begin,
}

/// A timeout or a key that a message is about. A key is represented by its hash. If two keys have
/// the same hash, a message waits for the next turn without need.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Id(TimeoutId),
    Key(u64),
}

impl Place {
    fn key((topic, key): (&str, &str)) -> Self {
        let mut hasher = DefaultHasher::new();
        (topic, key).hash(&mut hasher);
        Self::Key(hasher.finish())
    }

    fn target(target: &Target) -> Self {
        match target {
            Target::Id(id) => Self::Id(*id),
            Target::Key { topic, key } => Self::key((topic, key)),
        }
    }

    /// Returns the places of a message.
    pub(super) fn of(message: &Message) -> impl Iterator<Item = Self> {
        let places = match message {
            Message::Ended(ended) => [Some(Self::Id(ended.id)), None],
            Message::Call(request, _) => match request {
                Request::Insert(new) => Self::of_new(new),
                Request::Reset(target, _) | Request::Cancel(target) => [Some(Self::target(target)), None],
                Request::Requeue(id) | Request::Purge(id) => [Some(Self::Id(*id)), None],
                Request::Transact(..) => [None, None],
            },
            _ => [None, None],
        };
        let many = if let Message::ScheduleMany(many, _) = message { &many[..] } else { &[] };
        places.into_iter().chain(many.iter().flat_map(Self::of_new)).flatten()
    }

    /// Returns the places of an operation.
    pub(super) fn of_operation(operation: &Operation) -> impl Iterator<Item = Self> + use<> {
        [operation.id().map(Self::Id), operation.key().map(Self::key)].into_iter().flatten()
    }

    fn of_new(new: &NewTimeout) -> [Option<Self>; 2] {
        // No other message can be about an id that is made here.
        [new.id.map(Self::Id), new.key.as_deref().map(|key| Self::key((&new.topic, key)))]
    }
}

/// Messages that wait for a later batch, because this one has their timeout already. Those
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

    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        self.queues.values().map(VecDeque::len).sum()
    }

    /// Removes the calls that have waited for `limit`.
    pub(super) fn take_late(&mut self, now: Instant, limit: Duration) -> Vec<Message> {
        let is_late = |message: &Message| message.waits_since(now).is_some_and(|since| now >= since + limit);
        let mut late = Vec::new();
        for queue in self.queues.values_mut().filter(|queue| queue.iter().any(is_late)) {
            let (gone, rest): (VecDeque<Message>, _) = std::mem::take(queue).into_iter().partition(is_late);
            late.extend(gone);
            *queue = rest;
        }
        self.queues.retain(|_, queue| !queue.is_empty());
        self.order.retain(|place| self.queues.contains_key(place));
        late
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
        Place::of(message).find(|place| self.queues.contains_key(place))
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

/// The time that operations have spent aside, and the pause before they are written again.
#[derive(Clone, Copy, Default)]
pub(super) struct Waited {
    pub(super) since: Option<Instant>,
    pub(super) pause: Duration,
    /// The time at which a turn first left them to the next one. It is their place in the queue,
    /// which they keep when they are divided.
    pub(super) postponed: Option<Instant>,
}

/// A batch that is being collected.
///
/// No id and no key occurs twice in it, because a store may execute all operations at once. A
/// second message with the same id or key waits for the next batch. An operation with a key and one
/// with an id may concern the same timeout, and the keeper accepts either order.
#[derive(Default)]
pub(super) struct Collection {
    pub(super) batch: Vec<Operation>,
    /// The origin of each operation.
    pub(super) origins: Vec<Origin>,
    /// The time that its operations have spent aside.
    pub(super) waited: Waited,
    places: HashSet<Place, BuildHasherDefault<IdHasher>>,
    bytes: usize,
}

impl Collection {
    /// Returns an empty collection that has waited as this one has.
    pub(super) fn sibling(&self) -> Self {
        Self { waited: self.waited, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Returns `true` if the batch can take another operation.
    pub(super) fn has_room(&self, max_batch: usize) -> bool {
        self.batch.len() < max_batch && self.bytes < MAX_BYTES
    }

    /// Returns `true` if an operation of the batch names this id.
    pub(super) fn has(&self, id: TimeoutId) -> bool {
        self.places.contains(&Place::Id(id))
    }

    /// Returns the place at which the message has to wait, if it is about a timeout that occurs in
    /// the batch already.
    pub(super) fn conflict(&self, message: &Message) -> Option<Place> {
        Place::of(message).find(|place| self.places.contains(place))
    }

    /// Adds an operation.
    pub(super) fn push(&mut self, operation: Operation, origin: Origin) {
        self.places.extend(Place::of_operation(&operation));
        if let Operation::Insert(insert) = &operation {
            self.bytes += insert.payload.len();
        }
        self.batch.push(operation);
        self.origins.push(origin);
    }

    /// Adds the operation of a call.
    pub(super) fn add(&mut self, request: Request, reply: Reply, now: Micros, instance: u32) {
        let operation = match request {
            Request::Insert(new) => Operation::Insert(insert(*new, now, instance)),
            Request::Reset(target, when) => Operation::Reset { target, due: when.from(now) },
            Request::Cancel(target) => Operation::Cancel(target),
            Request::Requeue(id) => Operation::Requeue { id, due: now },
            Request::Purge(id) => Operation::Purge(id),
            // The keeper runs it at once.
            Request::Transact(..) => return,
        };
        let id = if let Operation::Insert(insert) = &operation { Some(insert.id) } else { None };
        self.push(operation, Origin::Call(reply.about(id)));
    }

    /// Removes the operations with their origins.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Operation, Origin)> + use<> {
        std::mem::take(&mut self.batch).into_iter().zip(std::mem::take(&mut self.origins))
    }

    /// Divides a batch into halves.
    pub(super) fn split(self) -> [Self; 2] {
        let mut room = self.batch.len() / 2;
        self.divide(|_, _| {
            let fits = room > 0;
            room = room.saturating_sub(1);
            fits
        })
    }

    /// Divides a batch into the operations for which `is_first` returns `true`, and all others.
    pub(super) fn divide(mut self, mut is_first: impl FnMut(&Operation, &Origin) -> bool) -> [Self; 2] {
        let mut parts = [self.sibling(), self.sibling()];
        for (operation, origin) in self.take() {
            let part = usize::from(!is_first(&operation, &origin));
            parts[part].push(operation, origin);
        }
        parts
    }

    pub(super) fn has_calls(&self) -> bool {
        self.origins.iter().any(|origin| matches!(origin, Origin::Call(_)))
    }

    /// Returns the time since which its operations wait.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.waited.since.or(self.waited.postponed)
    }

    /// Fails the calls that have waited for `limit`. Returns the other operations.
    pub(super) fn fail_late_calls(self, now: Instant, limit: Duration, error: &StoreError) -> Self {
        let is_late = |origin: &Origin| matches!(origin, Origin::Call(reply) if now >= reply.waits_since(now) + limit);
        if !self.origins.iter().any(is_late) {
            return self;
        }
        let [late, rest] = self.divide(|_, origin| is_late(origin));
        late.fail_calls(error);
        rest
    }

    /// Fails the calls of the batch. Returns the other operations.
    pub(super) fn fail_calls(mut self, error: &StoreError) -> Self {
        let mut rest = self.sibling();
        for (operation, origin) in self.take() {
            match origin {
                Origin::Call(reply) => reply.fail(error),
                origin => rest.push(operation, origin),
            }
        }
        rest
    }
}

pub(crate) fn insert(new: NewTimeout, now: Micros, instance: u32) -> Insert {
    let id = new.id.unwrap_or_else(|| TimeoutId::made_at(now, instance));
    let (due, cap) = (new.when.from(now), new.max_delay.map(|delay| now.saturating_add(delay)));
    Insert {
        cap,
        key: new.key,
        if_pending: new.if_pending,
        format: new.format,
        payload: new.payload,
        period: new.period,
        max_lateness: new.max_lateness,
        traceparent: new.traceparent,
        ..Insert::new(id, cap.map_or(due, |cap| due.min(cap)), new.topic)
    }
}

/// Returns the answer to a call.
pub(crate) fn answer_of(operation: &Operation, outcome: &Outcome) -> Result<Answer, Error> {
    match (outcome, operation) {
        (Outcome::Created { .. } | Outcome::Exists, Operation::Insert(insert)) => {
            Ok(Answer::Scheduled(ScheduleAnswer::Created(insert.id)))
        }
        (Outcome::Kept(id), Operation::Insert(insert)) if insert.if_pending == IfPending::Refuse => {
            Err(Error::KeyTaken { id: *id })
        }
        (Outcome::Kept(id), _) => Ok(Answer::Scheduled(ScheduleAnswer::Kept(*id))),
        (Outcome::Moved(id, _), _) => Ok(Answer::Scheduled(ScheduleAnswer::Moved(*id))),
        (Outcome::TooOld, _) => Err(Error::IdTooOld),
        (Outcome::Refused(why), _) => Err(Error::Store(StoreError::Refused(why.clone()))),
        (Outcome::Changed(_), _) => Ok(Answer::Changed),
        (Outcome::Running, _) => Ok(Answer::Running),
        _ => Ok(Answer::Unknown),
    }
}
