//! The calls of a timer as futures.

use crate::TimeoutId;
use crate::answer::{CancelAnswer, ResetAnswer};
use crate::error::Error;
use crate::message::{Answer, Request};
use crate::new_timeout::after;
use crate::timer::{DurableTimer, by_key};
use crate::topic::Topic;
use crate::transaction::Target;
use std::future::Future;
use std::time::Duration;

impl DurableTimer {
    /// The same as [`cancel`](Self::cancel), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn cancel_async<P>(
        &self,
        topic: Topic<P>,
        key: &str,
    ) -> impl Future<Output = Result<CancelAnswer, Error>> + Send + use<P> {
        let answer = self.call_async(Request::Cancel(by_key(topic, key)));
        async move { answer.await.map(Answer::cancelled) }
    }

    /// The same as [`cancel_by_id`](Self::cancel_by_id), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn cancel_by_id_async(
        &self,
        id: TimeoutId,
    ) -> impl Future<Output = Result<CancelAnswer, Error>> + Send + use<> {
        let answer = self.call_async(Request::Cancel(Target::Id(id)));
        async move { answer.await.map(Answer::cancelled) }
    }

    /// The same as [`reset`](Self::reset), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`reset`](Self::reset).
    pub fn reset_async<P>(
        &self,
        topic: Topic<P>,
        key: &str,
        delay: Duration,
    ) -> impl Future<Output = Result<ResetAnswer, Error>> + Send + use<P> {
        let answer = after(delay).map(|when| self.call_async(Request::Reset(by_key(topic, key), when)));
        async move { answer?.await.map(Answer::reset) }
    }

    /// The same as [`reset_by_id`](Self::reset_by_id), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`reset`](Self::reset).
    pub fn reset_by_id_async(
        &self,
        id: TimeoutId,
        delay: Duration,
    ) -> impl Future<Output = Result<ResetAnswer, Error>> + Send + use<> {
        let answer = after(delay).map(|when| self.call_async(Request::Reset(Target::Id(id), when)));
        async move { answer?.await.map(Answer::reset) }
    }
}
