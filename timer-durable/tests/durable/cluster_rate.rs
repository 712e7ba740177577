//! A rate of all nodes that share a store, while their shards move.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use timer_durable::store::Store;
use timer_durable::transaction::{Insert, Operation};
use timer_durable::{Due, DurableTimer, ManualDurableDriver, TimeoutId};

use crate::scripted::ScriptedStore;
use crate::t;

const STEP: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);
/// The attempts that all nodes may begin in a second.
const RATE: usize = 320;

/// A node with timeouts of its own that are due, so that its share of the rate is its only limit.
struct Node {
    store: ScriptedStore,
    driver: ManualDurableDriver,
    _timer: DurableTimer,
}

/// The microseconds at which attempts have begun.
type Begun = Arc<Mutex<Vec<i64>>>;

impl Node {
    fn new(shards: u32, begun: &Begun) -> Self {
        let store = ScriptedStore::new();
        store.set_shards(shards);
        let new = || Operation::Insert(Insert::new(TimeoutId::new(), store.now(), "t"));
        let due: Vec<Operation> = (0..3_000).map(|_| new()).collect();
        store.memory.clone().write(&due, Instant::now()).unwrap();
        let clock = store.memory.clone();
        let begun = begun.clone();
        let handler = move |_: &Due<()>| {
            begun.lock().unwrap().push(clock.now());
            Ok(())
        };
        let builder = DurableTimer::builder().topic(t(), handler).cluster_rate(RATE as u32, SECOND);
        let (timer, driver) = builder.build_manual(store.clone()).unwrap();
        Self { store, driver, _timer: timer }
    }
}

fn run(nodes: &mut [Node], time: Duration) {
    for _ in 0..time.as_millis() / STEP.as_millis() {
        nodes.iter_mut().for_each(|node| _ = node.driver.advance(STEP));
    }
}

fn set_shards<const N: usize>(nodes: &[Node], shards: [u32; N]) {
    assert_eq!(nodes.len(), N);
    nodes.iter().zip(shards).for_each(|(node, shards)| node.store.set_shards(shards));
}

/// Nodes come, are killed and leave, and shards move at each of these moments.
#[test]
fn the_nodes_together_keep_the_rate() {
    let begun = Begun::default();
    let mut nodes: Vec<Node> = [22, 21, 21].map(|shards| Node::new(shards, &begun)).into();
    let start = nodes[0].store.now();
    run(&mut nodes, 3 * SECOND);
    // One is killed. Its shards are taken over when its lease is over.
    nodes.pop();
    run(&mut nodes, 2 * SECOND);
    set_shards(&nodes, [32, 32]);
    run(&mut nodes, 3 * SECOND);
    // Each of these moves shards between two attempts of the same second.
    for shards in [[64, 0], [0, 64], [40, 24], [1, 63], [32, 32]] {
        set_shards(&nodes, shards);
        run(&mut nodes, 300 * Duration::from_millis(1));
    }
    run(&mut nodes, 2 * SECOND);
    let mut begun = begun.lock().unwrap().clone();
    begun.sort_unstable();
    let before = |time: i64| begun.partition_point(|begun| *begun < time);
    for from in &begun {
        let count = before(from + 1_000_000) - before(*from);
        assert!(count * 10 <= RATE * 11, "{count} in the second from {} us on", from - start);
    }
    let in_second = |second: i64| before(start + (second + 1) * 1_000_000) - before(start + second * 1_000_000);
    let steady = [1, 2, 6, 7].map(in_second);
    assert!(steady.iter().all(|count| (RATE * 98 / 100..=RATE + 3).contains(count)), "{steady:?}");
    assert_eq!(in_second(4) / 10, RATE * 43 / 64 / 10, "the share of the dead node is not used");
}
