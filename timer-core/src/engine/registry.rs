//! The engines of the process by the shards that they lease.
//!
//! A timeout or a future refers to its timer by numbers only. It finds the engine here when it is
//! asked for its timer or has to start the worker. An engine is here from its creation to its drop,
//! which comes before the end of its lease. These calls are rare, so one mutex is enough.

use super::Engine;
use crate::entry::ShardId;
use crate::shard::BlockId;
use crate::sync::{Arc, Mutex, Weak};
use std::collections::BTreeMap;

/// The engines that lease shards, by the index of the first shard.
pub(super) type Registry = Mutex<BTreeMap<u16, (BlockId, Weak<Engine>)>>;

#[cfg(not(all(test, timer_loom)))]
static REGISTRY: Registry = Mutex::new(BTreeMap::new());

// An engine may end after the checker has dropped its statics, so the registry is leaked.
#[cfg(all(test, timer_loom))]
crate::sync::lazy_static! {
    static ref REGISTRY: &'static Registry = Box::leak(Box::new(Mutex::new(BTreeMap::new())));
}

/// Returns the registry of the process.
pub(super) fn registry() -> &'static Registry {
    &REGISTRY
}

/// Returns the engine that leases the shard with this name. Returns `None` once the engine is gone.
pub(crate) fn engine_of(id: ShardId) -> Option<Arc<Engine>> {
    let weak = {
        let engines = registry().lock();
        let (_, (block, engine)) = engines.range(..=id.index).next_back()?;
        if !block.contains(id) {
            return None;
        }
        engine.clone()
    };
    weak.upgrade()
}
