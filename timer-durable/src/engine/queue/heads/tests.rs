#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use std::collections::BTreeMap;

fn at(due: Micros, id: u128) -> Position {
    Position { due, id: TimeoutId::from_u128(id) }
}

fn heads(capacity: usize, topics: usize) -> Heads {
    Heads::new(Position::START..Position::END, capacity, topics)
}

fn open(_: usize) -> Need {
    Need::Open
}

fn pop(heads: &mut Heads, may_begin: fn(usize) -> bool) -> Vec<u128> {
    let mut order = heads.ready_order();
    std::iter::from_fn(|| heads.pop_ready(&mut order, may_begin)).map(|(id, _)| id.as_u128()).collect()
}

/// Adds the next page, which is one of the topic.
fn add(heads: &mut Heads, topic: usize, page: &[Position], bound: Position, now: Micros) {
    assert_eq!(heads.next_wanted(1_000, now, open).map(|wanted| wanted.topic), Some(topic));
    heads.add_page(topic, page, bound, now);
}

fn ready(heads: &mut Heads, now: Micros) -> Vec<u128> {
    heads.expire(now);
    pop(heads, |_| true)
}

#[test]
fn only_positions_before_the_bound_are_kept() {
    let mut heads = heads(100, 1);
    let all = Wanted { topic: 0, range: Position::START..Position::END, max: 2 };
    assert_eq!(heads.next_wanted(2, 0, open), Some(all));
    heads.put(at(1, 1), 0, 0);
    assert_eq!(heads.len(), 0, "nothing was loaded yet");
    add(&mut heads, 0, &[at(1, 1), at(5, 2)], at(5, 3), 0);
    heads.put(at(4, 3), 0, 0);
    heads.put(at(6, 4), 0, 0);
    assert_eq!((heads.len(), heads.next_due()), (3, Some(1)));
    assert_eq!(heads.next_wanted(2, 0, open).unwrap().range.start, at(5, 3));
    add(&mut heads, 0, &[at(6, 4)], Position::END, 0);
    assert_eq!(heads.next_wanted(2, 0, open), None, "it has everything");
    assert_eq!(ready(&mut heads, 5), [1, 3, 2]);
}

#[test]
fn each_topic_has_a_bound_of_its_own() {
    let mut heads = heads(8, 2);
    add(&mut heads, 0, &[at(1, 10), at(9, 11)], at(9, 12), 0);
    heads.put(at(2, 20), 1, 0);
    assert_eq!(heads.len(), 2, "nothing of the other topic was loaded");
    add(&mut heads, 1, &[at(2, 20)], Position::END, 0);
    heads.put(at(20, 13), 0, 0);
    heads.put(at(20, 21), 1, 0);
    heads.put(at(20, 30), 2, 0);
    assert_eq!(heads.len(), 5, "one is behind the bound of its topic, and the third topic is new");
    assert_eq!(ready(&mut heads, 20), [10, 20, 11, 21, 30]);
    assert!(heads.may_have(at(99, 1)) && !heads.has_none(2));
    heads.remove(TimeoutId::from_u128(30));
    assert!(heads.has_none(2) && !heads.has_none(0));
}

#[test]
fn a_full_memory_drops_the_latest_entries() {
    let mut heads = heads(8, 0);
    (0..12).for_each(|n| heads.put(at(100 - n, n as u128), 0, 0));
    assert_eq!((heads.retreat(), heads.len()), (6, 6));
    assert_eq!(heads.next_wanted(10, 0, open), None, "it is more than half full");
    assert_eq!(ready(&mut heads, 94), [11, 10, 9, 8, 7, 6]);
    heads.put(at(95, 5), 0, 94);
    assert!(!heads.entries.contains_key(&TimeoutId::from_u128(5)), "it lies behind the bound");
}

#[test]
fn more_topics_than_the_memory_has_entries_have_one_each() {
    let mut heads = heads(8, 0);
    (0..100).for_each(|n| heads.put(at(n, n as u128), n as usize % 50, 0));
    assert_eq!((heads.retreat(), heads.len()), (50, 50));
    assert_eq!(heads.next_wanted(10, 0, open), None, "no page would be dropped at once");
}

#[test]
fn removed_entries_do_not_fill_the_ready_list() {
    let mut heads = heads(1_000, 0);
    for n in 0..10_000 {
        heads.put(at(5, n), 0, 5);
        heads.remove(TimeoutId::from_u128(n));
    }
    assert!(heads.heads[0].ready.len() <= 2 * head::MAX_STALE, "{} stale ids", heads.heads[0].ready.len());
    assert_eq!(heads.due_len(), 0);
    heads.put(at(5, 1), 0, 5);
    assert_eq!(heads.due_len(), 1);
    assert_eq!(ready(&mut heads, 5), [1]);
}

#[test]
fn a_moved_entry_is_ready_at_its_new_time_only() {
    let mut heads = heads(8, 0);
    heads.put(at(5, 1), 0, 0);
    heads.expire(5);
    heads.put(at(9, 1), 0, 5);
    assert_eq!(ready(&mut heads, 8), []);
    assert_eq!(ready(&mut heads, 9), [1]);
    heads.push_ready(TimeoutId::from_u128(1));
    heads.remove(TimeoutId::from_u128(1));
    assert_eq!(ready(&mut heads, 9), [], "it has ended");
}

#[test]
fn a_paused_topic_does_not_fill_the_memory() {
    let mut heads = heads(32, 2);
    let need = |topic| if topic == 1 { Need::Paused } else { Need::Open };
    add(&mut heads, 0, &[at(5, 60), at(5, 61)], Position::END, 0);
    let first = Wanted { topic: 1, range: Position::START..Position::END, max: 2 };
    assert_eq!(heads.next_wanted(500, 0, need), Some(first));
    heads.add_page(1, &[at(5, 0), at(5, 1)], at(5, 2), 0);
    heads.put(at(5, 3), 1, 0);
    assert_eq!((heads.len(), heads.next_wanted(500, 0, need)), (4, None), "it lies behind the bound of its topic");
    heads.expire(5);
    assert_eq!(pop(&mut heads, |topic| topic == 0), [60, 61]);
    assert_eq!(pop(&mut heads, |topic| topic == 1), [0, 1]);
    assert!(heads.is_behind(1, 5));
    (0..2).for_each(|n| heads.remove(TimeoutId::from_u128(n)));
    let rest = Wanted { topic: 1, range: at(5, 2)..Position::END, max: 16 };
    assert_eq!(heads.next_wanted(500, 0, open), Some(rest));
}
/// Takes random steps beside a map that stands for the store, and checks the invariant after
/// each.
#[test]
fn each_timeout_before_the_bound_of_its_topic_is_in_memory() {
    let mut random = fastrand::Rng::with_seed(3);
    let range = at(100, 0)..at(900, 0);
    let mut heads = Heads::new(range.clone(), 16, 3);
    let mut store = BTreeMap::<u128, (usize, Micros)>::new();
    let needs = [Need::Open, Need::Limited, Need::Paused];
    let mut dropped = 0;
    for now in 0..3_000 {
        let id = random.u128(0..120);
        match random.u8(0..10) {
            0..=3 => {
                let topic = store.get(&id).map_or(random.usize(0..4), |(topic, _)| *topic);
                store.insert(id, (topic, random.i64(50..1_000)));
                heads.put(at(store[&id].1, id), topic, now / 4);
            }
            4..=5 => {
                store.remove(&id);
                heads.remove(TimeoutId::from_u128(id));
            }
            6..=8 => {
                let Some(wanted) = heads.next_wanted(6, now / 4, |topic| needs[topic % 3]) else { continue };
                let of_topic = store.iter().filter(|(_, (topic, _))| *topic == wanted.topic);
                let mut page: Vec<Position> = of_topic.map(|(id, (_, due))| at(*due, *id)).collect();
                page.retain(|position| wanted.range.contains(position));
                page.sort_unstable();
                page.truncate(wanted.max);
                let last = page.last().filter(|_| page.len() == wanted.max);
                heads.add_page(wanted.topic, &page, last.map_or(range.end, |last| last.next()), now / 4);
            }
            _ => heads.expire(now / 4),
        }
        dropped += heads.retreat();
        assert!(heads.len() <= 16);
        for (id, (topic, due)) in &store {
            let bound = heads.heads.get(*topic).map_or(range.end, |head| head.bound);
            let is_before = range.contains(&at(*due, *id)) && at(*due, *id) < bound;
            let id = TimeoutId::from_u128(*id);
            assert_eq!(heads.due_of(id), Some(*due).filter(|_| is_before), "{id} of topic {topic} at {now}");
        }
        let lens: Vec<usize> = heads.heads.iter().map(|head| head.len).collect();
        assert_eq!(
            (lens.iter().sum::<usize>(), heads.len()),
            (heads.entries.len(), heads.wheel.len() + heads.due_len())
        );
    }
    assert!(dropped > 50, "{dropped} entries");
}
