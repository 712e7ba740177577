//! What a timeout of the model captures: it runs the script, and sees when it is dropped.

use super::ops::{Kind, Op};
use super::world::World;
use std::panic::resume_unwind;
use std::sync::Arc;
use timer_core::{Timeout, TimerTask};

pub(crate) struct Guard {
    pub(crate) world: Arc<World>,
    pub(crate) id: usize,
    /// Done when it is dropped.
    pub(crate) end: Vec<Op>,
}

impl Guard {
    pub(crate) fn run(&self, timeout: &Timeout) {
        let panics = self.world.watched(|| self.world.run(self.id, timeout));
        if panics != Some(false) {
            // Also after a failure: nothing shall go on.
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
        if world.watched(|| world.told(*id, timeout)) == Some(true) {
            resume_unwind(Box::new("a hook of the model"));
        }
    }
}

/// Whose script of the end is that of a hook.
pub(crate) fn has_hook(kind: Kind) -> bool {
    kind == Kind::Task
}
