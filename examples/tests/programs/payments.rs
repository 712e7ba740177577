use super::{command_line, number, success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_payments");

#[test]
fn every_order_is_paid_or_closed_on_either_clock() {
    let mut paid = Vec::new();
    let mut refunded = Vec::new();
    for clock in ["virtual", "virtual", "real"] {
        let output = success(PROGRAM, &["--orders", "2000", "--close-after", "400", "--clock", clock]);
        assert_eq!(number(&output, "paid in time") + number(&output, "closed unpaid"), 2000);
        assert!(number(&output, "tried again") > 0 && output.contains(&format!("on the {clock} clock")));
        paid.push(number(&output, "paid in time"));
        refunded.push(number(&output, "went back"));
    }
    assert_eq!((paid[0], refunded[0]), (paid[1], refunded[1]), "virtual time is the same every time");
    assert!((500..1500).contains(&paid[0]) && refunded[0] > 0, "{paid:?} {refunded:?}");
}

#[test]
fn an_hour_of_virtual_time_passes_at_once() {
    let output = success(PROGRAM, &["--orders", "100", "--close-after", "3600000", "--clock", "virtual"]);
    assert_eq!(number(&output, "paid in time") + number(&output, "closed unpaid"), 100);
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--orders", "0"], "--orders: '0' given; allowed: a whole number in 1..=1000000"),
            (&["--close-after", "1"], "--close-after: '1' given"),
            (&["--backoff", "-1"], "--backoff: '-1' given; allowed: a whole number in 1..=60000"),
            (&["--clock", "wall"], "--clock: 'wall' given; allowed: real, virtual"),
        ],
    );
}
