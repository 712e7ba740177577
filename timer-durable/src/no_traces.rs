//! The module `traces` without the feature `opentelemetry`, which does nothing.

use crate::TimeoutId;
use crate::time::Micros;
use std::fmt::Display;

pub(crate) struct CallSpan;

impl CallSpan {
    pub(crate) fn start(_: &str, _: &mut Option<String>) -> Self {
        Self
    }

    pub(crate) fn end(self, _: Result<TimeoutId, &impl Display>) {}
}

pub(crate) fn created(_: &str) -> Option<String> {
    None
}

pub(crate) struct Current;

impl Current {
    pub(crate) fn of_caller() -> Self {
        Self
    }

    pub(crate) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        run()
    }
}

pub(crate) struct AttemptSpan;

impl AttemptSpan {
    pub(crate) fn start(_: TimeoutId, _: &str, _: u32, _: Micros, _: Option<&str>) -> Self {
        Self
    }

    pub(crate) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        run()
    }

    pub(crate) fn end(self, _: Option<&str>) {}
}
