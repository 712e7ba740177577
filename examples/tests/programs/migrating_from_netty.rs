use super::{command_line, success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_migrating_from_netty");

#[test]
fn a_blocking_task_delays_the_next_unless_on_a_pool() {
    let output = success(PROGRAM, &["--block", "1000"]);
    let rows = |executor: &str| output.lines().filter(|line| line.starts_with(executor)).count();
    assert_eq!((rows("immediate"), rows("pool")), (2, 2), "{output}");
    assert!(!output.contains("first   "), "the cancelled one ran: {output}");
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--block"], "--block needs a value; allowed: a whole number in 500..=60000"),
            (&["--block", "499"], "--block: '499' given"),
            (&["--block=1000", "--block=1000"], "--block given twice; allowed: once"),
            (&["now"], "operand: 'now' given; allowed: --block, --help"),
        ],
    );
}
