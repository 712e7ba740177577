//! A suite that tells whether a [`Store`] keeps the promises of the trait.
//!
//! [`run`] opens a new, empty store for each check and panics with the name of the check that a store fails. Run it from a
//! test of your own. The suite waits for the store's clock only where a check needs a timeout to become due.
//!
//! # Examples
//!
//! ```
//! timer_durable::conformance::run(timer_durable::MemoryStore::new);
//! ```

mod checks;

use crate::row::{Content, Id, Micros};
use crate::store::{Answers, Batch, IfPending, Insert, Store};

/// Runs all checks. `open` makes an empty store.
///
/// # Panics
///
/// If the store fails a check.
pub fn run<S: Store>(mut open: impl FnMut() -> S) {
    for (name, check) in checks::ALL {
        let mut store = open();
        assert!(!store.write(&Batch::default()).is_err(), "{name}: an empty batch is refused");
        check(&mut Bench { store: &mut store, name });
        store.leave();
    }
}

/// A store under test, with the words of the checks.
struct Bench<'a> {
    store: &'a mut dyn Store,
    name: &'static str,
}

impl Bench<'_> {
    fn write(&mut self, batch: Batch) -> Answers {
        match self.store.write(&batch) {
            Ok(answers) => answers,
            Err(error) => panic!("{}: the store refuses a batch: {error}", self.name),
        }
    }

    /// Inserts a timeout that is due since a second.
    fn insert(&mut self, key: Option<&str>) -> Id {
        let due = self.store.now() - 1_000_000;
        self.insert_at(key, due, IfPending::Refuse).0
    }

    fn insert_at(&mut self, key: Option<&str>, due: Micros, if_pending: IfPending) -> (Id, crate::store::Inserted) {
        let insert = new_insert(key, due, if_pending);
        let id = insert.id;
        (id, self.write(Batch { inserts: vec![insert], ..Batch::default() }).inserts[0])
    }

    fn begin(&mut self, id: Id) -> crate::store::Begun {
        self.write(Batch { begins: vec![id], ..Batch::default() }).begins.remove(0)
    }
}

fn new_insert(key: Option<&str>, due: Micros, if_pending: IfPending) -> Insert {
    let content =
        Content { topic: "topic".into(), key: key.map(str::to_owned), payload: vec![1, 2, 3], ..Content::default() };
    Insert { id: Id::new("topic", key), due, content, if_pending }
}
