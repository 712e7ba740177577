//! Work that implements `Runnable` ends once too: run, or abandoned.

use std::sync::Arc;

use timer_executor::{Runnable, Task};

use crate::support::Witness;

impl Runnable for Witness {
    fn run(self: Arc<Self>) {
        self.record("run");
    }

    fn abandoned(self: Arc<Self>) {
        self.record("abandoned");
    }
}

#[test]
fn shared_work_is_run_or_abandoned_once() {
    for panics in [false, true] {
        let witness = Arc::new(Witness { panics, ..Witness::default() });
        let [first, second] = [(); 2].map(|()| Task::from_shared(witness.clone()));
        assert_eq!(format!("{first:?}"), "Task(shared)");
        first.run();
        drop(second);
        assert_eq!(witness.calls(), ["run", "abandoned"]);
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}
