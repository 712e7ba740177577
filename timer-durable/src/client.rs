//! The part of a timer by which calls reach the keeper and the thread that reads.

use crate::call::Call;
use crate::error::{Error, MAX_KNOWN};
use crate::figures::Figures;
use crate::manual::ManualKeeper;
use crate::message::{Answer, Message, Reply, Request};
use crate::permits::{CallPermit, CallPermits};
use crate::reader_thread::{Read, ReaderThread, StoreReader};
use crate::schedule::{CheckedTimeout, NewTimeout};
use crate::shutdown::Shutdown;
use crate::store::{Reader, Store, StoreError};
use crate::timetable::Counted;
use crossbeam_channel::Sender;
use std::collections::HashSet;
use std::sync::Arc;

/// The number of messages in the keeper's queue from which on a caller is in a crowd.
const CROWD: usize = 12;

/// The part of a timer that sends calls. It does not keep the timer alive.
pub(crate) struct Client {
    pub(crate) name: String,
    /// The description of the store.
    pub(crate) store: String,
    pub(crate) keeper: Sender<Message>,
    pub(crate) reader: ReaderThread,
    pub(crate) permits: Arc<CallPermits>,
    pub(crate) read_permits: Arc<CallPermits>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) counted: Arc<Counted>,
    pub(crate) shutdown: Arc<Shutdown>,
    pub(crate) topics: HashSet<Arc<str>>,
    pub(crate) max_payload: usize,
    /// The keeper on virtual time, which has no thread.
    pub(crate) manual: Option<Arc<ManualKeeper>>,
}

impl Client {
    /// Sends a call, if it has a permit.
    pub(crate) fn call<T: 'static>(
        &self,
        request: Request,
        read: impl FnOnce(Result<Answer, Error>) -> Result<T, Error> + Send + 'static,
    ) -> Call<T> {
        self.ask(|reply| Message::Call(request, reply), read)
    }

    /// Sends a message that has an answer, if it has a permit.
    pub(crate) fn ask<S: Send + 'static, T: 'static>(
        &self,
        message: impl FnOnce(Reply<S>) -> Message,
        read: impl FnOnce(Result<S, Error>) -> Result<T, Error> + Send + 'static,
    ) -> Call<T> {
        match self.permits.take() {
            Ok(permit) => self.ask_with(Some(permit), message, read),
            Err(error) => Call::ready(read(Err(error))),
        }
    }

    /// Sends a message that has an answer. The permit is kept until then.
    pub(crate) fn ask_with<S: Send + 'static, T: 'static>(
        &self,
        permit: Option<CallPermit>,
        message: impl FnOnce(Reply<S>) -> Message,
        read: impl FnOnce(Result<S, Error>) -> Result<T, Error> + Send + 'static,
    ) -> Call<T> {
        let (reply, answer) = Reply::new();
        match self.send(message(reply.holding(permit))) {
            Ok(()) => Call::sent(answer, read).in_crowd(self.keeper.len() >= CROWD),
            Err(error) => Call::ready(read(Err(error))),
        }
    }

    /// Sends a message to the keeper, and takes its turns if it has no thread.
    pub(crate) fn send(&self, message: Message) -> Result<(), Error> {
        self.keeper.send(message).map_err(|_| Error::Stopped)?;
        self.settle();
        Ok(())
    }

    /// Takes the turns of a keeper that has no thread.
    pub(crate) fn settle(&self) {
        if let Some(keeper) = &self.manual {
            keeper.settle();
        }
    }

    /// Runs a function on the store, between two batches.
    pub(crate) fn use_store<T: Send + 'static>(
        &self,
        function: impl FnOnce(&mut dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Call<T> {
        let message = |reply: Reply<T>| {
            Message::UseStore(Box::new(move |store| reply.send(function(store).map_err(Error::from))))
        };
        self.ask_with(None, message, |answer| answer)
    }

    /// Runs a read, if it has a permit. Its result is read by a second function, by the caller.
    pub(crate) fn read<R: Send + 'static, T: 'static>(
        &self,
        read: impl FnOnce(&mut dyn Reader) -> Result<R, StoreError> + Send + 'static,
        then: impl FnOnce(R) -> Result<T, Error> + Send + 'static,
    ) -> Call<T> {
        Call::from_result(self.read_permits.take().map(|permit| self.read_with(Some(permit), read, then)))
    }

    /// Lets the thread for reads call a function, or the keeper if there is none. A function whose
    /// answer nobody waits for is not called.
    pub(crate) fn read_with<R: Send + 'static, T: 'static>(
        &self,
        permit: Option<CallPermit>,
        read: impl FnOnce(&mut dyn Reader) -> Result<R, StoreError> + Send + 'static,
        then: impl FnOnce(R) -> Result<T, Error> + Send + 'static,
    ) -> Call<T> {
        let (reply, answer) = Reply::new();
        let reply = reply.holding(permit);
        let read: Read = Box::new(move |reader| {
            if reply.is_abandoned() {
                return reader.is_ok();
            }
            let result = reader.and_then(read);
            let is_usable = result.is_ok();
            reply.send(result.map_err(Error::from));
            is_usable
        });
        Call::from_result(self.send_read(read).map(|()| Call::sent(answer, |result| result.and_then(then))))
    }

    /// Sends a read to the thread for reads, or to the keeper if there is none.
    pub(crate) fn send_read(&self, read: Read) -> Result<(), Error> {
        if self.shutdown.is_requested() {
            return Err(Error::Stopped);
        }
        self.reader.send(read).or_else(|read| {
            let read = move |store: &mut dyn Store| _ = read(Ok(&mut StoreReader(store)));
            self.send(Message::UseStore(Box::new(read)))
        })
    }

    /// Checks the parts of a new timeout, whose topic the builder must have named.
    pub(crate) fn check(&self, new: NewTimeout) -> Result<CheckedTimeout, Error> {
        if !self.topics.contains(new.topic) {
            let known = self.topics.iter().take(MAX_KNOWN).map(ToString::to_string).collect();
            return Err(Error::UnknownTopic { given: new.topic.to_owned(), known });
        }
        new.check(self.max_payload)
    }
}
