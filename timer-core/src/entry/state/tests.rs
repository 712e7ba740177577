use super::*;

const ALL: [State; 8] = [
    State::Waiting,
    State::Queued,
    State::Running,
    State::Moved,
    State::Fired,
    State::Expired,
    State::Dying,
    State::Cancelled,
];

fn at(nanos: Nanos) -> Deadline {
    Deadline::up(nanos)
}

fn word(state: State, nanos: Nanos) -> AtomicState {
    AtomicState(AtomicU64::new(Word::new(state, at(nanos)).0))
}

// Guards against tokio-rs/tokio#2473, in which a reset or a removal in an unforeseen state
// panicked.
#[test]
fn every_state_answers_every_operation() {
    for state in ALL {
        let fresh = || word(state, 1_000);
        let (waits, runs) = (state == State::Waiting, matches!(state, State::Running | State::Moved));
        let ended = !waits && !runs && state != State::Queued;
        assert_eq!((fresh().state(), fresh().deadline()), (state, at(1_000)));
        assert_eq!(fresh().is_waiting(), waits);
        assert_eq!(
            fresh().reset(at(7), false) == Reset::Lost,
            ended,
            "{state:?}: reset moves every entry that has not ended"
        );
        assert_eq!(fresh().cancel() == Cancel::Lost, ended, "{state:?}: cancel ends every entry that has not ended");
        assert_eq!(fresh().cancel_by_stop(), waits);
        assert_eq!(fresh().cancel_abandoned(), state == State::Queued);
        assert_eq!(fresh().expire(1_000, Runs::Once), if waits { Due::Won(at(1_000)) } else { Due::Gone });
        assert_eq!(fresh().enqueue(999), if waits { Due::Later(at(1_000)) } else { Due::Gone }, "never early");
        assert_eq!(fresh().start(Runs::Again) == Some(at(1_000)), state == State::Queued);
        assert_eq!(fresh().rearm(at(5)).is_none(), !runs);
        assert_eq!(fresh().fail(), runs);
        assert_eq!(fresh().wait_for_run(), matches!(state, State::Fired | State::Dying));
        assert_eq!(fresh().bring_forward(at(500)) == Reset::Lost, !waits && !runs);
    }
}

#[test]
fn an_expiry_of_a_moved_entry_returns_the_new_deadline() {
    let state = word(State::Waiting, 5);
    assert_eq!(state.reset(at(9), false), Reset::Done);
    assert_eq!(state.expire(8, Runs::Once), Due::Later(at(9)));
    assert_eq!(state.expire(9, Runs::Once), Due::Won(at(9)));
}

#[test]
fn a_reset_takes_an_entry_out_of_the_queue() {
    let state = word(State::Waiting, 5);
    assert_eq!(state.enqueue(5), Due::Won(at(5)));
    assert!(state.is_queued_since(5));
    assert_eq!(state.reset(at(9), false), Reset::WasQueued);
    assert!(state.is_waiting() && state.start(Runs::Once).is_none());
    assert_eq!(state.reset(at(10), false), Reset::MustLink, "the first thread may be preempted");
    assert_eq!(state.enqueue(10), Due::Won(at(10)));
    assert!(!state.is_queued_since(5) && state.is_queued_since(10));
}

#[test]
fn a_reset_during_a_run_decides_the_next_one() {
    let state = word(State::Waiting, 5);
    assert_eq!(state.expire(5, Runs::Again), Due::Won(at(5)));
    assert_eq!(state.reset(at(70), false), Reset::Done);
    assert_eq!(state.rearm(at(10)), Some(at(70)));
    assert_eq!(state.deadline(), at(70));
}

// Guards against citadel-foss/mill-io#86, in which a cancel during the run was lost.
#[test]
fn a_cancel_during_a_run_is_not_lost() {
    let state = word(State::Running, 5);
    assert_eq!(state.cancel(), Cancel::WasRunning);
    assert_eq!(state.rearm(at(10)), None);
    assert!(state.wait_for_run());
    assert!(state.end_run(), "a thread waits");
    assert_eq!(state.state(), State::Cancelled);
}

#[test]
fn a_due_entry_is_not_brought_forward() {
    assert_eq!(word(State::Waiting, 5).bring_forward(at(5)), Reset::Lost);
    assert_eq!(word(State::Waiting, 6).bring_forward(at(5)), Reset::MustLink);
}

#[test]
fn a_reset_links_until_another_thread_has_linked() {
    let state = word(State::Waiting, 90);
    assert_eq!(state.reset(at(5), false), Reset::MustLink);
    assert_eq!(state.reset(at(45), false), Reset::MustLink, "the first thread may be preempted");
    assert_eq!(state.reset(at(3), false), Reset::MustLink);
    state.set_linked(|deadline| deadline >= at(45));
    assert_eq!(state.reset(at(50), false), Reset::MustLink, "a link under 45 is too late for 3");
    state.set_linked(|deadline| deadline >= at(45));
    assert_eq!(state.reset(at(60), false), Reset::Done);
    assert_eq!(state.expire(60, Runs::Once), Due::Won(at(60)));
    assert!(!state.end_run(), "no thread waits");
}

#[test]
fn a_cancel_tells_whether_the_entry_may_be_in_no_wheel() {
    let cancel = |change: fn(&AtomicState)| {
        let state = word(State::Waiting, 5);
        change(&state);
        state.cancel()
    };
    let run = |state: &AtomicState| {
        assert_eq!(state.expire(5, Runs::Again), Due::Won(at(5)));
        assert_eq!(state.rearm(at(20)), Some(at(20)));
    };
    assert_eq!(cancel(|_| ()), Cancel::WasWaiting);
    assert_eq!(cancel(|state| assert_eq!(state.reset(at(9), false), Reset::Done)), Cancel::WasWaiting);
    assert_eq!(cancel(|state| assert_eq!(state.reset(at(3), false), Reset::MustLink)), Cancel::WasUnlinked);
    assert_eq!(cancel(run), Cancel::WasUnlinked);
    assert_eq!(cancel(|state| assert_eq!(state.enqueue(5), Due::Won(at(5)))), Cancel::WasQueued);
}

#[test]
fn the_flag_does_not_outlive_waiting() {
    for end in [AtomicState::cancel_by_stop, |state: &AtomicState| state.enqueue(90) != Due::Gone] {
        let state = word(State::Waiting, 90);
        assert_eq!(state.reset(at(5), false), Reset::MustLink);
        assert!(end(&state) && !Word(state.0.load(Ordering::Relaxed)).is_flagged());
    }
}
