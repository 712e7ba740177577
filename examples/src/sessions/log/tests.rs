use super::*;

fn parse(rows: &str) -> Result<Log, String> {
    Log::parse(format!("{HEADER}\n{rows}").as_bytes()).map_err(|error| error.to_string())
}

fn refusal(rows: &str) -> String {
    parse(rows).expect_err("a refusal")
}

#[test]
fn seconds_count_from_the_first_request() {
    let log = parse("100,b,200,5\n100,a,304,0\n107,b,404,2").expect("a good log");
    let rows: Vec<_> = log.requests.iter().map(|r| (r.second, r.host)).collect();
    assert_eq!(rows, [(0, 0), (0, 1), (7, 0)]);
    assert_eq!(log.hosts, ["b", "a"]);
    assert_eq!((log.bytes, log.span()), (7, 7));
}

#[test]
fn lines_may_end_in_cr_lf_or_at_the_end_of_the_file() {
    let text = "time,host,status,bytes\r\n1,a,200,5\r\n2,a,200,5";
    assert_eq!(Log::parse(text.as_bytes()).expect("a good log").requests.len(), 2);
}

#[test]
fn files_without_requests_are_refused() {
    let error = Log::parse(b"").expect_err("empty").to_string();
    assert_eq!(error, "line 1: the file is empty; the first line must be 'time,host,status,bytes'");
    assert_eq!(refusal(""), "line 2: the file ends after its header; at least one request is needed");
}

#[test]
fn a_missing_header_is_refused() {
    let error = Log::parse(b"1,a,200,5\n").expect_err("no header").to_string();
    assert_eq!(error, "line 1: '1,a,200,5' given; the first line must be 'time,host,status,bytes'");
}

#[test]
fn the_wrong_number_of_columns_is_refused() {
    let text = "line 3: 3 columns given; allowed: the four of time,host,status,bytes";
    assert_eq!(refusal("1,a,200,5\n2,a,200\n3,a,200,5\n"), text);
    assert!(refusal("1,a,200,5,6\n").starts_with("line 2: 5 columns given"));
}

#[test]
fn an_empty_line_is_refused_even_at_the_end() {
    assert_eq!(refusal("1,a,200,5\n\n2,a,200,5\n"), "line 3: empty line; allowed: time,host,status,bytes");
    assert_eq!(refusal("1,a,200,5\n\n"), "line 3: empty line; allowed: time,host,status,bytes");
}

#[test]
fn each_column_is_checked() {
    for bad in ["", "x", "-1", "+1", "1.5", " 1", "4294967296", "99999999999999999999999"] {
        let text = format!("line 2: time '{bad}' given; allowed: a whole number in 0..=4294967295");
        assert_eq!(refusal(&format!("{bad},a,200,5\n")), text);
    }
    for bad in ["", "a b", "a\"b", "a\tb"] {
        let text = format!("line 2: host '{}' given; allowed: a name without blanks and quotes", bad.escape_debug());
        assert_eq!(refusal(&format!("1,{bad},200,5\n")), text);
    }
    for bad in ["", "OK", "99", "600"] {
        let text = format!("line 2: status '{bad}' given; allowed: a whole number in 100..=599");
        assert_eq!(refusal(&format!("1,a,{bad},5\n")), text);
    }
    for bad in ["", "-", "1000000000001"] {
        let text = format!("line 2: bytes '{bad}' given; allowed: a whole number in 0..=1000000000000");
        assert_eq!(refusal(&format!("1,a,200,{bad}\n")), text);
    }
}

#[test]
fn a_time_that_goes_backwards_is_refused() {
    let text = "line 4: time 8 goes backwards; allowed: 9, as in the line before, or later";
    assert_eq!(refusal("7,a,200,5\n9,b,200,5\n8,a,200,5\n"), text);
}

#[test]
fn invalid_utf8_is_refused_with_its_position() {
    let text = b"time,host,status,bytes\n1,a,200,5\n2,\xff,200,5\n";
    let error = Log::parse(text).expect_err("not UTF-8").to_string();
    assert_eq!(error, "line 3: byte 3 is not UTF-8; allowed: UTF-8 text");
}

#[test]
fn errors_escape_controls_and_cut_long_lines() {
    let error = Log::parse(&b"\x1b".repeat(100_000)).expect_err("no header").to_string();
    assert!(!error.contains('\u{1b}') && error.len() < 500);
    assert!(!refusal("\u{1b}[2J,a,200,5\n").contains('\u{1b}'));
    assert!(!refusal("1,\u{1b}[2J,200,5\n").contains('\u{1b}'));
}

/// A reader of an endless line that counts the bytes read.
struct Endless(usize);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b'x');
        self.0 += buffer.len();
        Ok(buffer.len())
    }
}

#[test]
fn at_most_a_megabyte_of_a_line_is_read() {
    for head in ["", "time,host,status,bytes\n1,a,200,5\n"] {
        let mut endless = Endless(0);
        let error = Log::read(io::BufReader::new(head.as_bytes().chain(&mut endless))).expect_err("endless");
        assert_eq!(error.line, if head.is_empty() { 1 } else { 3 });
        assert_eq!(error.reason, "longer than 1 MB; allowed: 1000000 bytes");
        assert!(endless.0 < 2 * LONGEST_LINE, "{}", endless.0);
    }
}

#[test]
fn a_line_of_exactly_a_megabyte_is_read() {
    let line = |length: usize| format!("1,{},200,5\n", "x".repeat(length - "1,,200,5\n".len()));
    let log = parse(&(line(LONGEST_LINE) + "2,a,200,5\n")).expect("a good log");
    assert_eq!(log.hosts.len(), 2);
    assert!(refusal(&line(LONGEST_LINE + 1)).starts_with("line 2: longer than 1 MB"));
}
