//! A writer of JSON text. The values come in the order of the document, so no tree is needed.

use std::fmt::{Display, Write};
use std::time::Duration;

/// A JSON document under construction.
#[derive(Debug, Default)]
pub(super) struct Json {
    text: String,
}

impl Json {
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Writes an object whose members `write` adds, each by [`Self::key`] and a value.
    pub(super) fn object(&mut self, write: impl FnOnce(&mut Self)) {
        self.text.push('{');
        write(self);
        self.text.push('}');
    }

    /// Begins a member of an object.
    pub(super) fn key(&mut self, name: &str) -> &mut Self {
        self.separate();
        self.string(name);
        self.text.push(':');
        self
    }

    /// Writes an array with the values that `write` writes for the items.
    pub(super) fn array<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.text.push('[');
        for item in items {
            self.separate();
            write(self, item);
        }
        self.text.push(']');
    }

    pub(super) fn boolean(&mut self, is_true: bool) {
        self.push(format_args!("{is_true}"));
    }

    /// Writes a finite number.
    pub(super) fn number(&mut self, number: impl Display) {
        self.push(format_args!("{number}"));
    }

    /// Writes a duration as a number that always has a decimal point or an exponent.
    pub(super) fn seconds(&mut self, duration: Duration) {
        self.push(format_args!("{:?}", duration.as_secs_f64()));
    }

    /// Writes the value, or `null` if there is none.
    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => write(self, value),
            None => self.text.push_str("null"),
        }
    }

    pub(super) fn string(&mut self, string: &str) {
        self.text.push('"');
        for character in string.chars() {
            match character {
                '"' | '\\' => self.text.extend(['\\', character]),
                character if character.is_control() => self.push(format_args!("\\u{:04x}", u32::from(character))),
                character => self.text.push(character),
            }
        }
        self.text.push('"');
    }

    /// Writes a comma, unless the next item is the first one.
    fn separate(&mut self) {
        if !self.text.ends_with(['{', '[']) {
            self.text.push(',');
        }
    }

    fn push(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(arguments);
    }
}

#[cfg(test)]
mod tests {
    use super::Json;
    use std::time::Duration;

    #[test]
    fn documents_are_read_back_as_written() {
        let names = ["", "\"", "\\", "\n\u{1}\u{7f}\u{85}", "</script>", "µ-Zähler 定时器", "{", "["];
        let mut json = Json::default();
        json.object(|json| {
            json.key("names").array(names, |json, name| json.string(name));
            json.key("none").option(None::<u64>, Json::number);
            json.key("seconds").array([Duration::from_nanos(1), Duration::MAX], Json::seconds);
            json.key("{").object(|json| json.key("inner").array([u64::MAX, 0], Json::number));
            json.key("empty").object(|_| {});
        });
        let expected = serde_json::json!({
            "names": names,
            "none": null,
            "seconds": [1e-9, Duration::MAX.as_secs_f64()],
            "{": { "inner": [u64::MAX, 0] },
            "empty": {},
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json.into_text()).unwrap(), expected);
    }
}
