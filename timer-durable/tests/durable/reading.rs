//! Reading timeouts back.

use std::time::{Duration, SystemTime};

use futures::executor::block_on;
use timer_durable::{Due, DurableTimer, Error, Filter, MemoryStore, Retry, Schedule, TimeoutState, Topic};

use crate::t;

const LONG: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn a_timeout_is_read_back_with_its_type() {
    let builder = DurableTimer::builder().topic(t(), |_: &Due<String>| Err::<(), _>(Retry::after(DAY)));
    let (timer, mut driver) =
        builder.topic_elsewhere(Topic::<()>::new("other")).build_manual(MemoryStore::new()).unwrap();
    let id = timer.schedule(t(), Schedule::after(LONG).key("k"), "payload").wait().unwrap().id();
    let found = timer.get(t::<String>(), "k").wait().unwrap().unwrap();
    assert_eq!((found.id, &*found.payload, found.state), (id, "payload", TimeoutState::Pending));
    assert!(found.deadline() > SystemTime::UNIX_EPOCH + LONG);
    driver.advance(LONG);
    let found = block_on(timer.get_by_id(t::<Vec<u8>>(), id)).unwrap().unwrap();
    assert_eq!((&*found.payload, found.state, found.attempt), (&b"payload"[..], TimeoutState::Retrying, 1));
    assert_eq!(timer.get_by_id(Topic::<()>::new("other"), id).wait().unwrap(), None, "the topic of another payload");
    assert_eq!(block_on(timer.get(t::<String>(), "l")).unwrap(), None);
    let rows = block_on(timer.list(&Filter::new().topic("t").due(SystemTime::UNIX_EPOCH..), None, 9)).unwrap();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [id]);
    for limit in [0, 1_001] {
        assert!(matches!(timer.list(&Filter::new(), None, limit).wait(), Err(Error::Setting { name: "limit", .. })));
    }
    let error = timer.list(&Filter::new().key_prefix("k"), None, 1).wait().unwrap_err();
    assert_eq!(error.to_string(), "key_prefix: k was given; allowed is a prefix with a topic");
}
