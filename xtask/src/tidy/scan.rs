//! Splits Rust text into what the compiler reads and what it skips, keeping every line and column in place.

/// Two texts of the same shape as the source: blanks stand where the other one has something.
pub(crate) struct Layers {
    /// The code, literals emptied.
    pub(crate) code: String,
    /// The comments, with their slashes.
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Layer {
    Code,
    Comment,
    /// The inside of a literal: in neither text.
    Literal,
}

/// Knows line and nested block comments, strings, raw strings, characters and lifetimes.
pub(crate) fn layers(text: &str) -> Layers {
    let mut scan = Scan { chars: text.chars().collect(), at: 0, code: String::new(), comments: String::new() };
    while let Some(c) = scan.peek(0) {
        match c {
            '/' if scan.peek(1) == Some('/') => scan.line_comment(),
            '/' if scan.peek(1) == Some('*') => scan.block_comment(),
            '"' => scan.string(),
            '\'' => scan.quote(),
            c if c == '_' || c.is_alphanumeric() => scan.word(),
            _ => scan.take(Layer::Code),
        }
    }
    Layers { code: scan.code, comments: scan.comments }
}

struct Scan {
    chars: Vec<char>,
    at: usize,
    code: String,
    comments: String,
}

impl Scan {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Moves one character to its layer, and a blank to the others.
    fn take(&mut self, layer: Layer) {
        let Some(c) = self.peek(0) else { return };
        let blank = if c == '\n' || c == '\r' { c } else { ' ' };
        self.code.push(if layer == Layer::Code { c } else { blank });
        self.comments.push(if layer == Layer::Comment { c } else { blank });
        self.at += 1;
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.take(Layer::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.peek(0) {
            let pair = (c, self.peek(1).unwrap_or(' '));
            self.take(Layer::Comment);
            if pair == ('/', '*') {
                depth += 1;
                self.take(Layer::Comment);
            } else if pair == ('*', '/') {
                depth -= 1;
                self.take(Layer::Comment);
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.take(Layer::Code);
        while let Some(c) = self.peek(0) {
            match c {
                '"' => return self.take(Layer::Code),
                '\\' => {
                    self.take(Layer::Literal);
                    self.take(Layer::Literal);
                }
                _ => self.take(Layer::Literal),
            }
        }
    }

    /// A character, or a lifetime.
    fn quote(&mut self) {
        if self.peek(1) != Some('\\') && self.peek(2) != Some('\'') {
            return self.take(Layer::Code);
        }
        self.take(Layer::Code);
        if self.peek(0) == Some('\\') {
            self.take(Layer::Literal);
        }
        self.take(Layer::Literal);
        while self.peek(0).is_some_and(|c| c != '\'' && c != '\n') {
            self.take(Layer::Literal);
        }
        self.take(Layer::Code);
    }

    /// An identifier, a number, or the prefix of a raw string and the string.
    fn word(&mut self) {
        let mut word = String::new();
        while let Some(c) = self.peek(0).filter(|c| *c == '_' || c.is_alphanumeric()) {
            word.push(c);
            self.take(Layer::Code);
        }
        if matches!(word.as_str(), "r" | "br" | "cr") {
            let hashes = (0..).take_while(|ahead| self.peek(*ahead) == Some('#')).count();
            if self.peek(hashes) == Some('"') {
                self.raw_string(hashes);
            }
        }
    }

    fn raw_string(&mut self, hashes: usize) {
        for _ in 0..=hashes {
            self.take(Layer::Code);
        }
        while let Some(c) = self.peek(0) {
            if c == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                for _ in 0..=hashes {
                    self.take(Layer::Code);
                }
                return;
            }
            self.take(Layer::Literal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::layers;

    fn code(text: &str) -> String {
        layers(text).code
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        assert_eq!(code("a // b\nc"), "a     \nc");
        assert_eq!(code("a /* b /* c */ d */ e"), "a                   e");
        assert_eq!(code(r#"a "b \" // c" d"#), r#"a "         " d"#);
        assert_eq!(code("r#\"b \" c\"# d"), "r#\"     \"# d");
        assert_eq!(code("br\"\\\" d"), "br\" \" d");
    }

    #[test]
    fn characters_are_literals_and_lifetimes_are_code() {
        assert_eq!(code(r#"'"' x '\'' y '\u{7f}' z"#), "' ' x '  ' y '      ' z");
        assert_eq!(code("&'a str, b'x', '/'"), "&'a str, b' ', ' '");
        assert_eq!(code("r#type // x"), "r#type     ");
    }

    #[test]
    fn comments_keep_their_line() {
        let comments = layers("a // SAFETY: x\n/* y\nz */ b \"// no\"\n").comments;
        assert_eq!(comments.lines().map(str::trim).collect::<Vec<_>>(), ["// SAFETY: x", "/* y", "z */"]);
    }

    #[test]
    fn nothing_moves() {
        let text = "let é = \"ü\n\"; // ß\nlet x = 'é';\n";
        let layers = layers(text);
        assert_eq!(layers.code.lines().count(), text.lines().count());
        let columns = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
        assert_eq!(columns(&layers.code), columns(text));
        assert_eq!(columns(&layers.comments), columns(text));
    }
}
