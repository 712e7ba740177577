//! The output of the program, with the summary on standard output and the rest on standard error.

use std::fmt;
use std::io::{self, Write};

/// Prints a text on standard output.
pub(super) fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // A reader such as `head` may close its end early. That is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}

/// Prints a line on standard error.
pub(super) fn say(line: impl fmt::Display) {
    // If standard error is closed, the line is lost.
    let _ = writeln!(io::stderr(), "{line}");
}
