//! The engines of the process by the shards that they lease.
//!
//! A timeout or a future holds nothing of its timer but numbers. When it is asked for its timer, or has to
//! start the worker, it finds the engine here. No other call does that, so one mutex is enough.

use super::engine::Engine;
use crate::entry::ShardId;
use crate::shard::BlockId;
use crate::sync::{Arc, Mutex, Weak};
use std::collections::BTreeMap;

/// The engines that lease shards, by the index of the first shard.
type Engines = Mutex<BTreeMap<u16, (BlockId, Weak<Engine>)>>;

#[cfg(not(all(test, timer_loom)))]
static ENGINES: Engines = Mutex::new(BTreeMap::new());

#[cfg(all(test, timer_loom))]
crate::sync::lazy_static! {
    static ref ENGINES: Engines = Mutex::new(BTreeMap::new());
}

/// Makes the engine known while it leases the block.
pub(super) fn insert(block: BlockId, engine: &Arc<Engine>) {
    ENGINES.lock().insert(block.first(), (block, Arc::downgrade(engine)));
}

/// Forgets the engine. Called before its lease ends.
pub(super) fn remove(block: BlockId) {
    ENGINES.lock().remove(&block.first());
}

/// Returns the engine that leases the shard with this name. Returns `None` once the engine is gone.
pub(crate) fn engine_of(id: ShardId) -> Option<Arc<Engine>> {
    let weak = {
        let engines = ENGINES.lock();
        let (_, (block, engine)) = engines.range(..=id.index).next_back()?;
        if !block.contains(id) {
            return None;
        }
        engine.clone()
    };
    weak.upgrade()
}
