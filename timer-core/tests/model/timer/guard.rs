//! The capture of a model's timeout, which performs the operations and notices its drop.

use super::ops::{Kind, Op};
use super::world::World;
use std::panic::resume_unwind;
use std::sync::Arc;
use timer_core::{Timeout, TimerTask};

pub(crate) struct Guard {
    pub(crate) world: Arc<World>,
    pub(crate) id: usize,
    /// The operations at its drop.
    pub(crate) end: Vec<Op>,
}

impl Guard {
    pub(crate) fn run(&self, timeout: &Timeout) {
        let panics = self.world.watched(|| self.world.run(self.id, timeout));
        if panics != Some(false) {
            // After a failure a periodic task must not run again either.
            resume_unwind(Box::new("a task of the model"));
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.world.watched(|| self.world.freed(self.id, &self.end));
    }
}

/// A task with a hook.
pub(crate) struct Hooked(pub Guard);

impl TimerTask for Hooked {
    fn run(self, timeout: &Timeout) {
        self.0.run(timeout);
    }

    fn cancelled(self, timeout: &Timeout) {
        let Guard { world, id, .. } = &self.0;
        if world.watched(|| world.call_hook(*id, timeout)) == Some(true) {
            resume_unwind(Box::new("a hook of the model"));
        }
    }
}

/// Returns `true` if the operations at the end belong to a hook.
pub(crate) fn has_hook(kind: Kind) -> bool {
    kind == Kind::Task
}
