//! Linked lists of values in one array.
//!
//! All nodes of all lists are in one array in chunks, so a value takes no allocation of its own,
//! and an empty list takes eight bytes. A node knows its neighbors but not its list. Only the first
//! and the last node of a list name the list, which is enough to remove any node in O(1).
//!
//! Removed nodes form a list of vacant nodes, which are used again. If most nodes are vacant, nodes
//! at the end of the array are moved into vacant ones, so the memory follows the number of values.

use crate::wheel::chunks::Chunks;
use crate::wheel::slots::MIN_CAPACITY;

/// The mark of a link to a list. The first node of a list has one instead of a previous node, and
/// the last node has one instead of a next node. An empty list is linked to itself.
const LIST: u32 = 1 << 31;

/// The link to the list of vacant nodes.
const VACANT: u32 = u32::MAX;

/// The array has at most this many times more nodes than there are values.
const MAX_VACANT_RATIO: usize = 4;

/// A value and its neighbors in a list, or a vacant node.
pub(super) struct Node<V> {
    pub(super) deadline: u64,
    pub(super) value: Option<V>,
    previous: u32,
    pub(super) next: u32,
}

struct List {
    first: u32,
    last: u32,
}

/// Lists by number, and their nodes.
pub(super) struct Lists<V> {
    nodes: Chunks<Node<V>>,
    lists: Chunks<List>,
    vacant: List,
    vacancies: usize,
}

impl<V> Lists<V> {
    pub(super) fn new() -> Self {
        let vacant = List { first: VACANT, last: VACANT };
        Lists { nodes: Chunks::new(), lists: Chunks::new(), vacant, vacancies: 0 }
    }

    /// Returns the number of lists.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns the number of values.
    #[inline]
    pub(super) fn values(&self) -> usize {
        self.nodes.len() - self.vacancies
    }

    /// Adds an empty list.
    pub(super) fn push_list(&mut self) {
        let list = LIST | self.len() as u32;
        self.lists.push(List { first: list, last: list });
    }

    /// Removes the last list, which must be empty.
    pub(super) fn pop_list(&mut self) {
        debug_assert!(self.is_empty(self.len() as u32 - 1));
        self.lists.pop();
        self.lists.shrink();
    }

    /// Returns the first node of a list. If the list is empty, returns a number to which no node
    /// belongs.
    #[inline]
    pub(super) fn first(&self, list: u32) -> u32 {
        self.lists.get(list as usize).map_or(VACANT, |list| list.first)
    }

    pub(super) fn is_empty(&self, list: u32) -> bool {
        self.first(list) & LIST != 0
    }

    #[inline]
    pub(super) fn node(&self, node: u32) -> Option<&Node<V>> {
        self.nodes.get(node as usize)
    }

    #[inline]
    pub(super) fn node_mut(&mut self, node: u32) -> Option<&mut Node<V>> {
        self.nodes.get_mut(node as usize)
    }

    /// Returns the list of a node if the node is the last one of it.
    pub(super) fn list_of_last(&self, node: u32) -> Option<u32> {
        let next = self.node(node)?.next;
        (next & LIST != 0).then_some(next & !LIST)
    }

    /// Inserts a value at the end of a list and returns its node.
    #[inline]
    pub(super) fn insert(&mut self, list: u32, deadline: u64, value: V) -> u32 {
        let vacant = self.vacant.last;
        let new = Node { deadline, value: Some(value), previous: VACANT, next: VACANT };
        let node = if self.vacancies > 0 {
            self.unlink(vacant);
            self.vacancies -= 1;
            if let Some(node) = self.nodes.get_mut(vacant as usize) {
                // The node is vacant, so there is nothing to drop.
                std::mem::forget(std::mem::replace(node, new));
            }
            vacant
        } else {
            self.nodes.push(new);
            self.nodes.len() as u32 - 1
        };
        self.link(LIST | list, node);
        node
    }

    /// Links a node at the end of a list.
    #[inline]
    fn link(&mut self, list: u32, node: u32) {
        let last = self.list_mut(list).last;
        if let Some(node) = self.nodes.get_mut(node as usize) {
            (node.previous, node.next) = (last, list);
        }
        self.set_next(last, node);
        self.set_previous(list, node);
    }

    /// Unlinks a node from its list.
    #[inline]
    fn unlink(&mut self, node: u32) {
        let Some(&Node { previous, next, .. }) = self.nodes.get(node as usize) else { return };
        self.set_next(previous, next);
        self.set_previous(next, previous);
    }

    /// Sets the successor of a node, or the first node of a list.
    #[inline]
    fn set_next(&mut self, at: u32, next: u32) {
        match self.nodes.get_mut(at as usize) {
            Some(node) => node.next = next,
            None => self.list_mut(at).first = next,
        }
    }

    /// Sets the predecessor of a node, or the last node of a list.
    #[inline]
    fn set_previous(&mut self, at: u32, previous: u32) {
        match self.nodes.get_mut(at as usize) {
            Some(node) => node.previous = previous,
            None => self.list_mut(at).last = previous,
        }
    }

    #[inline]
    fn list_mut(&mut self, list: u32) -> &mut List {
        self.lists.get_mut((list & !LIST) as usize).unwrap_or(&mut self.vacant)
    }

    /// Moves a node to the end of another list.
    pub(super) fn move_to(&mut self, list: u32, node: u32) {
        self.unlink(node);
        self.link(LIST | list, node);
    }

    /// Makes a node vacant, whose value has been taken out.
    #[inline]
    pub(super) fn remove(&mut self, node: u32) {
        self.move_to(VACANT, node);
        self.vacancies += 1;
    }

    /// Gives up the last node if most nodes are vacant. If that node has a value, it takes the
    /// place of a vacant node. Returns the former and the present node of a value that was moved.
    pub(super) fn compact(&mut self) -> Option<(u32, u32)> {
        let len = self.nodes.len();
        if len <= MAX_VACANT_RATIO * self.values() + MIN_CAPACITY {
            return None;
        }
        let (last, vacant) = (len as u32 - 1, self.vacant.last);
        self.vacancies -= 1;
        let is_vacant = self.node(last).is_some_and(|node| node.value.is_none());
        self.unlink(if is_vacant { last } else { vacant });
        let node = self.nodes.pop()?;
        self.nodes.shrink();
        if is_vacant {
            return None;
        }
        self.set_next(node.previous, vacant);
        self.set_previous(node.next, vacant);
        *self.nodes.get_mut(vacant as usize)? = node;
        Some((last, vacant))
    }

    /// Iterates over all values and their deadlines.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (u64, V)> {
        self.nodes.into_iter().filter_map(|node| Some((node.deadline, node.value?)))
    }
}

#[cfg(test)]
impl<V> Lists<V> {
    /// Asserts that the links are right. Returns the nodes of each list.
    pub(super) fn check(&self) -> Vec<Vec<u32>> {
        let walk = |list: u32, ends: &List| {
            let (mut nodes, mut previous, mut at) = (Vec::new(), list, ends.first);
            while let Some(node) = self.node(at) {
                assert_eq!((node.previous, node.value.is_none()), (previous, list == VACANT));
                nodes.push(at);
                (previous, at) = (at, node.next);
            }
            assert_eq!((at, ends.last), (list, previous));
            nodes
        };
        let lists: Vec<_> = (LIST..).zip(self.lists.iter()).map(|(list, ends)| walk(list, ends)).collect();
        assert_eq!(walk(VACANT, &self.vacant).len(), self.vacancies);
        assert_eq!(lists.iter().map(Vec::len).sum::<usize>(), self.values(), "each value is in one list");
        assert!(self.nodes.len() <= MAX_VACANT_RATIO * self.values() + 2 * MIN_CAPACITY);
        lists
    }

    pub(super) fn capacity(&self) -> usize {
        self.nodes.capacity()
    }
}
