//! Random commands for a child, and the rounds of a ledger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::child::{Ledger, Options, Running};

/// A stream of random commands. The keys of all children of a store differ.
pub(crate) struct Load {
    pub(crate) random: Rng,
    pub(crate) ledger: Arc<Ledger>,
    next_key: u64,
    recent: Vec<String>,
}

impl Load {
    pub(crate) fn new(seed: u64) -> Self {
        println!("seed {seed}");
        Self { random: Rng::with_seed(seed), ledger: Arc::default(), next_key: 0, recent: Vec::new() }
    }

    /// Sends one random command. Returns `false` if the child is dead.
    pub(crate) fn send_one(&mut self, child: &mut Running) -> bool {
        let choice = self.random.u8(..);
        if choice < 150 || self.recent.len() < 20 {
            // Half of the timeouts are due soon, and half of them far beyond the life of this
            // child.
            let delay = if self.random.bool() { self.random.u64(0..40) } else { self.random.u64(0..1_500) };
            return self.schedule(child, delay);
        }
        let index = self.random.usize(..self.recent.len());
        let key = self.recent.swap_remove(index);
        let line = if choice < 205 {
            self.ledger.account().asks_cancel(&key).then(|| format!("cancel {key}"))
        } else {
            let delay = self.random.u64(0..600);
            self.ledger.account().asks_reset(&key).then(|| format!("reset {key} {delay}"))
        };
        line.is_none_or(|line| child.send(&line))
    }

    pub(crate) fn schedule(&mut self, child: &mut Running, delay: u64) -> bool {
        self.next_key += 1;
        let key = format!("k{}", self.next_key);
        self.ledger.account().asks_schedule(&key);
        if self.recent.len() > 400 {
            self.recent.clear();
        }
        self.recent.push(key.clone());
        child.send(&format!("schedule {key} {delay} payload-{key}"))
    }

    /// Sends commands for `time`. Returns `false` as soon as the child is dead.
    pub(crate) fn send_for(&mut self, child: &mut Running, time: Duration) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if !self.send_one(child) {
                return false;
            }
        }
        true
    }

    /// Lets a last child end everything that is left, stops it, and returns the faults.
    pub(crate) fn settle(&mut self, options: &Options) -> Vec<String> {
        let child = Running::start(options, &self.ledger);
        let limit = Instant::now() + Duration::from_secs(30);
        while !self.ledger.account().open().is_empty() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = self.stop(child);
        let mut account = self.ledger.account();
        let lost: Vec<String> = account.open().iter().take(10).map(|key| format!("lost: {key}")).collect();
        account.faults.extend(lost);
        if !status {
            account.faults.push("the last child did not exit with 0".to_owned());
        }
        println!("{}", account.totals());
        std::mem::take(&mut account.faults)
    }

    /// Asks the child to quit. Returns `true` if it exits with 0.
    pub(crate) fn stop(&self, mut child: Running) -> bool {
        child.tell("quit");
        child.wait().success()
    }
}
