//! The timeouts that may begin in a batch.

use std::collections::HashMap;

/// The timeouts of a topic that may begin.
pub(super) struct Room {
    pub(super) left: usize,
    /// Whether the topic was paused, so that its timeouts count as overdue.
    pub(super) is_catching_up: bool,
}

/// The places of handlers that a batch of begins may take.
pub(crate) struct Places {
    free: usize,
    /// The free places for overdue timeouts.
    overdue: usize,
    /// The rooms of the topics with timeouts that are due.
    rooms: HashMap<usize, Room>,
}

impl Places {
    pub(crate) fn new(free: usize, overdue: usize) -> Self {
        Self { free, overdue, rooms: HashMap::new() }
    }

    pub(super) fn add_room(&mut self, topic: usize, room: Room) {
        self.rooms.insert(topic, room);
    }

    /// Returns `true` if a timeout of a topic may begin.
    pub(super) fn allow(&self, topic: usize, is_overdue: bool) -> bool {
        let Some(room) = self.rooms.get(&topic) else { return false };
        let free = if is_overdue || room.is_catching_up { self.free.min(self.overdue) } else { self.free };
        free > 0 && room.left > 0
    }

    /// Takes the place of a timeout that begins.
    pub(super) fn take(&mut self, topic: usize, is_overdue: bool) {
        let Some(room) = self.rooms.get_mut(&topic) else { return };
        room.left -= 1;
        self.free -= 1;
        self.overdue -= usize::from(is_overdue || room.is_catching_up);
    }
}
