//! The calls of a timer as futures.

use crate::TimeoutId;
use crate::answer::{Cancelled, ResetAnswer, cancelled, reset};
use crate::error::Error;
use crate::message::Request;
use crate::payload::Payload;
use crate::timer::{DurableTimer, after, by_key, scheduled};
use crate::transaction::{IfPending, Target};
use std::future::Future;
use std::time::Duration;

impl DurableTimer {
    /// The same as [`new_timeout`](Self::new_timeout), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout`](Self::new_timeout). The call takes effect even if the future is
    /// dropped.
    pub fn new_timeout_async<P: Payload>(
        &self,
        topic: &str,
        delay: Duration,
        payload: &P,
    ) -> impl Future<Output = Result<TimeoutId, Error>> + Send + use<P> {
        let timeout = after(delay).and_then(|when| self.build(topic, when, payload));
        let answer = timeout.map(|timeout| self.call_async(Request::Insert(Box::new(timeout))));
        async move { answer?.await.and_then(scheduled) }
    }

    /// The same as [`new_timeout_keyed`](Self::new_timeout_keyed), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`new_timeout_keyed`](Self::new_timeout_keyed). The call takes effect even if the
    /// future is dropped.
    pub fn new_timeout_keyed_async<P: Payload>(
        &self,
        topic: &str,
        key: &str,
        delay: Duration,
        payload: &P,
        if_pending: IfPending,
    ) -> impl Future<Output = Result<TimeoutId, Error>> + Send + use<P> {
        let timeout = self.keyed(topic, key, delay, payload, if_pending);
        let answer = timeout.map(|timeout| self.call_async(Request::Insert(Box::new(timeout))));
        async move { answer?.await.and_then(scheduled) }
    }

    /// The same as [`cancel`](Self::cancel), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel). The call takes effect even if the future is dropped.
    pub fn cancel_async(
        &self,
        topic: &str,
        key: &str,
    ) -> impl Future<Output = Result<Cancelled, Error>> + Send + use<> {
        let answer = self.call_async(Request::Cancel(by_key(topic, key)));
        async move { answer.await.map(cancelled) }
    }

    /// The same as [`cancel_by_id`](Self::cancel_by_id), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel). The call takes effect even if the future is dropped.
    pub fn cancel_by_id_async(&self, id: TimeoutId) -> impl Future<Output = Result<Cancelled, Error>> + Send + use<> {
        let answer = self.call_async(Request::Cancel(Target::Id(id)));
        async move { answer.await.map(cancelled) }
    }

    /// The same as [`reset`](Self::reset), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`reset`](Self::reset). The call takes effect even if the future is dropped.
    pub fn reset_async(
        &self,
        topic: &str,
        key: &str,
        delay: Duration,
    ) -> impl Future<Output = Result<ResetAnswer, Error>> + Send + use<> {
        let answer = after(delay).map(|when| self.call_async(Request::Reset(by_key(topic, key), when)));
        async move { answer?.await.map(reset) }
    }

    /// The same as [`reset_by_id`](Self::reset_by_id), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`reset`](Self::reset). The call takes effect even if the future is dropped.
    pub fn reset_by_id_async(
        &self,
        id: TimeoutId,
        delay: Duration,
    ) -> impl Future<Output = Result<ResetAnswer, Error>> + Send + use<> {
        let answer = after(delay).map(|when| self.call_async(Request::Reset(Target::Id(id), when)));
        async move { answer?.await.map(reset) }
    }
}
