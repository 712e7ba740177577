//! The timeouts that may begin in a batch.

/// The timeouts of a section that may begin.
pub(super) struct Room {
    left: usize,
    /// Whether none may begin.
    pub(super) is_blocked: bool,
    /// Whether the topic was paused, so that its timeouts count as overdue.
    pub(super) is_catching_up: bool,
}

impl Room {
    pub(super) fn new(left: usize, is_catching_up: bool) -> Self {
        Self { left, is_blocked: left == 0, is_catching_up }
    }
}

/// The places of handlers that a batch of begins may take.
pub(crate) struct Places {
    free: usize,
    /// The free places for overdue timeouts.
    overdue: usize,
    /// The rooms of the sections.
    rooms: Vec<Room>,
}

impl Places {
    pub(super) fn new(free: usize, overdue: usize, rooms: Vec<Room>) -> Self {
        Self { free, overdue, rooms }
    }

    /// Returns the places of a shelf for timeouts of a blocked topic.
    pub(super) fn of_shelf(&self, section: usize, free: usize) -> Self {
        let room = |number| Room::new(if number == section { free } else { 0 }, false);
        Self::new(free, free, (0..self.rooms.len()).map(room).collect())
    }

    /// Returns the number of free places for overdue timeouts.
    pub(crate) fn for_overdue(&self) -> usize {
        self.free.min(self.overdue)
    }

    /// Returns `true` if a timeout of a section may begin.
    pub(super) fn allow(&self, section: usize, is_overdue: bool) -> bool {
        let room = &self.rooms[section];
        let free = if is_overdue || room.is_catching_up { self.for_overdue() } else { self.free };
        free > 0 && room.left > 0
    }

    /// Takes the place of a timeout that begins.
    pub(super) fn take(&mut self, section: usize, is_overdue: bool) {
        let room = &mut self.rooms[section];
        room.left -= 1;
        self.free -= 1;
        self.overdue -= usize::from(is_overdue || room.is_catching_up);
    }

    /// Returns the sections of blocked topics.
    pub(super) fn blocked(&self) -> impl Iterator<Item = usize> {
        self.rooms.iter().enumerate().filter(|(_, room)| room.is_blocked).map(|(section, _)| section)
    }
}
