//! The ledger's rule without a timer. The sessions are those of the log, whatever runs early, late
//! or out of order. Each seed is one schedule that a timer, an executor and a slow replay could
//! produce together.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

mod oracle;

use std::fmt::Write as _;
use std::time::Instant;

use examples::sessions::ledger::{Answer, Arming, Ledger};

const HOSTS: usize = 4;
const IDLE: u64 = 10;

struct Random(u64);

impl Random {
    // SplitMix64
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// Timeouts that may be handed over at any moment and then run at any later moment.
#[derive(Default)]
struct AnyTimer {
    pending: [Option<Arming>; HOSTS],
    handed_over: Vec<Arming>,
}

impl AnyTimer {
    fn anything_happens(&mut self, random: &mut Random, ledger: &Ledger) {
        for _ in 0..random.below(6) {
            if random.below(2) == 0 {
                self.handed_over.extend(self.pending[random.below(HOSTS)].take());
            } else if !self.handed_over.is_empty() {
                let which = random.below(self.handed_over.len());
                ledger.ran(self.handed_over.swap_remove(which));
            }
        }
    }

    fn runs_all_of(&mut self, host: usize, ledger: &Ledger) {
        self.handed_over.extend(self.pending[host].take());
        for arming in self.handed_over.extract_if(.., |arming| arming.host == host) {
            ledger.ran(arming);
        }
    }
}

fn replay(seed: u64) -> (String, Vec<(u64, String, u64, u64)>) {
    let random = &mut Random(seed);
    let ledger = Ledger::new(HOSTS, IDLE);
    let mut timer = AnyTimer::default();
    let mut csv = "time,host,status,bytes\n".to_owned();
    let mut second = 0;
    for _ in 0..60 {
        let host = random.below(HOSTS);
        writeln!(csv, "{second},{host},200,1").unwrap();
        for arming in ledger.enter(second) {
            timer.pending[arming.host] = Some(arming);
        }
        timer.anything_happens(random, &ledger);
        let mut answer = ledger.request(host);
        if answer == Answer::Overdue {
            timer.runs_all_of(host, &ledger);
            answer = ledger.request(host);
        }
        match answer {
            Answer::Opened(arming) => timer.pending[host] = Some(arming),
            Answer::Extended => {
                timer.anything_happens(random, &ledger);
                if timer.pending[host].is_none() {
                    timer.pending[host] = Some(ledger.rearm(host));
                }
            }
            Answer::Overdue => {
                panic!("seed {seed}: all timeouts of host {host} ran, it is open still")
            }
        }
        second += [0, 1, 4, 9, 10, 11][random.below(6)];
    }
    for arming in ledger.enter(u64::MAX) {
        timer.pending[arming.host] = Some(arming);
    }
    (0..HOSTS).for_each(|host| timer.runs_all_of(host, &ledger));
    assert!(ledger.wait_all_closed(Instant::now(), || {}), "seed {seed}: a session stays open");
    let rows = ledger.take_sessions().into_iter();
    (csv, rows.map(|s| (s.first, s.host.to_string(), s.last, s.requests)).collect())
}

#[test]
fn sessions_are_exact_under_every_schedule() {
    for seed in 0..20_000 {
        let (csv, sessions) = replay(seed);
        assert_eq!(sessions, oracle::sessions(&csv, IDLE), "seed {seed}\n{csv}");
    }
}
