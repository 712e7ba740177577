//! The buckets of the hashed wheel: a tree of pages, 64 to a page, that knows the earliest deadline of all.
//!
//! Each page keeps the earliest deadline of each of its 64 children, buckets or pages. So the root knows the next
//! expiry, and the way down to its bucket is one look per page: no tick is ever tried in vain. 512 slots are nine
//! pages in two layers; 2^30 slots are five layers.
//!
//! A page exists only while something is in it. A few emptied ones are kept at hand, since a timeout that comes and
//! goes alone would otherwise allocate each time. So memory follows the values, not the number of slots.

use super::bucket::{Bucket, Place};
use super::location::Tracker;

const BITS: u32 = 6;
const FAN: usize = 1 << BITS;

/// How many emptied pages are kept.
const SPARE: usize = 16;

/// Emptied pages. Boxed, since they come from the tree and go back there without being copied.
#[allow(clippy::vec_box)]
type Spare<V> = Vec<Box<Page<V>>>;

/// Buckets by slot number, and the earliest deadline among them.
pub(super) struct MinTree<V> {
    root: Option<Box<Page<V>>>,
    /// How far a slot number is shifted to give its digit in the root.
    shift: u32,
    /// A lower bound of all deadlines; `u64::MAX` when empty, but that does not mean empty.
    earliest: u64,
    spare: Spare<V>,
}

struct Page<V> {
    /// A lower bound of the deadlines of each child; `u64::MAX` where it is empty.
    earliest: [u64; FAN],
    /// Bit n: child n is not empty.
    occupied: u64,
    children: Children<V>,
}

/// Pages of buckets outnumber the others 64 to 1, so the difference in size costs little, and a box would cost a miss.
#[allow(clippy::large_enum_variant)]
enum Children<V> {
    Buckets([Bucket<V>; FAN]),
    Pages([Option<Box<Page<V>>>; FAN]),
}

impl<V> Page<V> {
    /// Not inlined: it needs room on the stack that each caller that links would have to make.
    #[cold]
    #[inline(never)]
    fn new(shift: u32) -> Box<Self> {
        let children = match shift {
            0 => Children::Buckets(std::array::from_fn(|_| Bucket::new())),
            _ => Children::Pages([const { None }; FAN]),
        };
        Box::new(Page { earliest: [u64::MAX; FAN], occupied: 0, children })
    }

    /// An emptied page of the right kind, or a new one.
    fn fresh(spare: &mut Spare<V>, shift: u32) -> Box<Self> {
        match spare.pop() {
            Some(page) if matches!(page.children, Children::Buckets(_)) == (shift == 0) => page,
            _ => Page::new(shift),
        }
    }

    fn min(&self) -> u64 {
        self.earliest.iter().fold(u64::MAX, |min, earliest| min.min(*earliest))
    }

    /// The child whose bound is `earliest`, which is the minimum of this page.
    fn find(&self, earliest: u64) -> usize {
        match self.earliest.iter().position(|bound| *bound == earliest) {
            Some(at) if earliest != u64::MAX => at,
            // If the minimum is the last tick of all, every child that is not empty has it.
            _ => self.occupied.trailing_zeros() as usize % FAN,
        }
    }

    /// Brings the bounds up to date from the bucket of `slot` to here; returns the former bound of the child.
    fn refresh(&mut self, slot: u32, shift: u32, spare: &mut Spare<V>) -> u64 {
        let at = digit(slot, shift);
        let known = self.earliest[at];
        let (earliest, empty) = match &mut self.children {
            Children::Buckets(buckets) => (buckets[at].earliest(), buckets[at].is_empty()),
            Children::Pages(pages) => match &mut pages[at] {
                Some(page) => {
                    let former = page.refresh(slot, shift - BITS, spare);
                    if page.occupied == 0 {
                        shelve(&mut pages[at], spare);
                        (u64::MAX, true)
                    } else {
                        (if former == known { page.min() } else { known }, false)
                    }
                }
                None => (u64::MAX, true),
            },
        };
        self.earliest[at] = earliest;
        if empty {
            self.occupied &= !(1 << at);
        }
        known
    }
}

fn digit(slot: u32, shift: u32) -> usize {
    (slot >> shift) as usize % FAN
}

fn shelve<V>(page: &mut Option<Box<Page<V>>>, spare: &mut Spare<V>) {
    if let Some(page) = page.take()
        && spare.len() < SPARE
    {
        spare.push(page);
    }
}

impl<V> MinTree<V> {
    /// For the slots 0 to 2^`bits` - 1. Allocates nothing yet.
    pub(super) fn new(bits: u32) -> Self {
        let layers = bits.div_ceil(BITS).max(1);
        MinTree { root: None, shift: (layers - 1) * BITS, earliest: u64::MAX, spare: Vec::new() }
    }

    /// A lower bound of all deadlines; `None` exactly when empty.
    pub(super) fn earliest(&self) -> Option<u64> {
        self.root.as_ref().map(|_| self.earliest)
    }

    /// Appends to the bucket of `slot`.
    pub(super) fn push(&mut self, slot: u32, deadline: u64, value: V, tracker: &mut impl Tracker<V>) {
        self.earliest = self.earliest.min(deadline);
        let (mut next, mut shift) = (&mut self.root, self.shift);
        loop {
            let page = next.get_or_insert_with(|| Page::fresh(&mut self.spare, shift));
            let at = digit(slot, shift);
            page.earliest[at] = page.earliest[at].min(deadline);
            page.occupied |= 1 << at;
            match &mut page.children {
                Children::Buckets(buckets) => {
                    return buckets[at].push(slot, deadline, value, tracker);
                }
                Children::Pages(pages) => (next, shift) = (&mut pages[at], shift - BITS),
            }
        }
    }

    /// The bucket of `slot`, if its page exists.
    pub(super) fn bucket(&self, slot: u32) -> Option<&Bucket<V>> {
        let (mut page, mut shift) = (self.root.as_deref()?, self.shift);
        loop {
            let at = digit(slot, shift);
            match &page.children {
                Children::Buckets(buckets) => return Some(&buckets[at]),
                Children::Pages(pages) => (page, shift) = (pages[at].as_deref()?, shift - BITS),
            }
        }
    }

    fn bucket_mut(&mut self, slot: u32) -> Option<&mut Bucket<V>> {
        let (mut page, mut shift) = (self.root.as_deref_mut()?, self.shift);
        loop {
            let at = digit(slot, shift);
            match &mut page.children {
                Children::Buckets(buckets) => return Some(&mut buckets[at]),
                Children::Pages(pages) => (page, shift) = (pages[at].as_deref_mut()?, shift - BITS),
            }
        }
    }

    /// Takes a value out of the bucket of `slot`.
    pub(super) fn remove(
        &mut self,
        slot: u32,
        position: u32,
        wanted: impl FnOnce(&V) -> bool,
        tracker: &mut impl Tracker<V>,
    ) -> Option<V> {
        let bucket = self.bucket_mut(slot)?;
        let known = bucket.earliest();
        let value = bucket.remove_and_compact(slot, position, wanted, tracker)?;
        if bucket.is_empty() || bucket.earliest() != known {
            self.refresh(slot);
        }
        Some(value)
    }

    /// Moves what is due by `now` in the bucket with the earliest bound to the end of `due`. Every call makes the bound of
    /// one bucket exact.
    pub(super) fn take_earliest(&mut self, now: u64, due: &mut Vec<Place<V>>, tracker: &mut impl Tracker<V>) {
        let slot = self.descend(|page, earliest| page.find(earliest));
        if let Some(bucket) = self.bucket_mut(slot) {
            bucket.take_due(slot, now, due, tracker);
            self.refresh(slot);
        }
    }

    /// Moves all of one bucket to the end of `out`.
    pub(super) fn take_any(&mut self, out: &mut Vec<Place<V>>) {
        let slot = self.descend(|page, _| page.occupied.trailing_zeros() as usize % FAN);
        if let Some(bucket) = self.bucket_mut(slot) {
            let mut taken = Vec::new();
            bucket.swap_out(&mut taken);
            out.append(&mut taken);
            self.refresh(slot);
        }
    }

    /// From the root to a bucket, the child on each page chosen by `choose` from the page and its bound.
    fn descend(&self, choose: impl Fn(&Page<V>, u64) -> usize) -> u32 {
        let (mut slot, mut earliest, mut next) = (0, self.earliest, self.root.as_deref());
        while let Some(page) = next {
            let at = choose(page, earliest);
            slot = slot << BITS | at as u32;
            earliest = page.earliest[at];
            next = match &page.children {
                Children::Buckets(_) => None,
                Children::Pages(pages) => pages[at].as_deref(),
            };
        }
        slot
    }

    /// The bucket of `slot` was emptied, or its bound has risen.
    fn refresh(&mut self, slot: u32) {
        if let Some(root) = &mut self.root {
            let former = root.refresh(slot, self.shift, &mut self.spare);
            if root.occupied == 0 {
                self.earliest = u64::MAX;
                shelve(&mut self.root, &mut self.spare);
            } else if former == self.earliest {
                self.earliest = root.min();
            }
        }
    }

    /// Drops every page.
    pub(super) fn clear(&mut self) {
        self.root = None;
        self.earliest = u64::MAX;
        self.spare = Vec::new();
    }
}

#[cfg(test)]
impl<V> Page<V> {
    /// Every bucket below with its slot; asserts that bounds and bits are right.
    fn check<'a>(&'a self, above: u32, buckets: &mut Vec<(u32, &'a Bucket<V>)>) -> usize {
        let mut pages = 1;
        assert_ne!(self.occupied, 0, "an empty page is linked");
        for at in 0..FAN {
            let slot = above << BITS | at as u32;
            let (earliest, empty) = match &self.children {
                Children::Buckets(all) => {
                    buckets.push((slot, &all[at]));
                    (all[at].earliest(), all[at].is_empty())
                }
                Children::Pages(all) => {
                    pages += all[at].as_ref().map_or(0, |page| page.check(slot, buckets));
                    (all[at].as_ref().map_or(u64::MAX, |page| page.min()), all[at].is_none())
                }
            };
            assert_eq!(self.earliest[at], earliest);
            assert_eq!(self.occupied >> at & 1 == 0, empty);
        }
        pages
    }
}

#[cfg(test)]
impl<V> MinTree<V> {
    /// Every bucket with its slot, and the number of pages, spare ones included.
    pub(super) fn check(&self) -> (Vec<(u32, &Bucket<V>)>, usize) {
        let mut buckets = Vec::new();
        let pages = self.root.as_ref().map_or(0, |root| root.check(0, &mut buckets));
        assert_eq!(self.earliest, self.root.as_ref().map_or(u64::MAX, |root| root.min()));
        assert!(self.spare.len() <= SPARE);
        for page in &self.spare {
            assert_eq!((page.occupied, page.min()), (0, u64::MAX), "a spare page is not clean");
            match &page.children {
                Children::Buckets(all) => assert!(all.iter().all(Bucket::is_empty)),
                Children::Pages(all) => assert!(all.iter().all(Option::is_none)),
            }
        }
        (buckets, pages + self.spare.len())
    }
}
