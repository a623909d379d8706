//! A lexer for those of Erlang's tokens that terms consist of.

use super::ParseError;
use num_bigint::BigInt;

/// One token of a term's text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Integer(BigInt),
    Float(f64),
    Atom(String),
    /// `fun`, without quotes.
    Fun,
    /// The characters of a string literal.
    String(Vec<char>),
    /// The numbers of `<0.85.0>`.
    Pid(Vec<u64>),
    /// The numbers of `#Ref<0.1.2.3>`.
    Ref(Vec<u64>),
    /// The numbers of `#Port<0.6>`.
    Port(Vec<u64>),
    /// `,` `.` `|` `{` `}` `[` `]` `#` `:` `/` `-` `+`
    Punctuation(char),
    /// `=>`
    Arrow,
    /// `<<`
    OpenBinary,
    /// `>>`
    CloseBinary,
    End,
}

impl Token {
    /// The name of the token in error messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Integer(n) => format!("the integer {n}"),
            Token::Float(f) => format!("the float {f}"),
            Token::Atom(text) => format!("the atom {text}"),
            Token::Fun => "'fun'".into(),
            Token::String(_) => "a string".into(),
            Token::Pid(_) => "a pid".into(),
            Token::Ref(_) => "a reference".into(),
            Token::Port(_) => "a port".into(),
            Token::Punctuation(c) => format!("'{c}'"),
            Token::Arrow => "'=>'".into(),
            Token::OpenBinary => "'<<'".into(),
            Token::CloseBinary => "'>>'".into(),
            Token::End => "the end of the text".into(),
        }
    }
}

/// Reads tokens one by one.
pub(super) struct Lexer<'t> {
    rest: &'t str,
    line: usize,
    column: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Lexer<'t> {
        Lexer {
            rest: text,
            line: 1,
            column: 1,
        }
    }

    /// An error at the current position.
    pub(super) fn error(&self, what: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line,
            column: self.column,
            what: what.into(),
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        // Lines and columns are only for messages.
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    /// Skips `text`, if it comes next. Returns whether it did.
    fn eat(&mut self, text: &str) -> bool {
        let there = self.rest.starts_with(text);
        if there {
            text.chars().for_each(|_| {
                self.bump();
            });
        }
        there
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let from = self.rest;
        while self.peek().is_some_and(&belongs) {
            self.bump();
        }
        &from[..from.len() - self.rest.len()]
    }

    fn skip_blanks(&mut self) {
        // Blanks and comments may alternate.
        loop {
            self.take_while(char::is_whitespace);
            if self.peek() != Some('%') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    /// The next token. At the end it is always [`Token::End`].
    pub(super) fn next(&mut self) -> Result<Token, ParseError> {
        self.skip_blanks();
        let Some(c) = self.peek() else {
            return Ok(Token::End);
        };
        match c {
            '0'..='9' => self.number(),
            // Letters of Latin-1 are letters in Erlang's atoms, too. × and ÷ are not among them.
            'a'..='z' | 'ß'..='ö' | 'ø'..='ÿ' => match self.take_while(in_name) {
                "fun" => Ok(Token::Fun),
                name => Ok(Token::Atom(name.into())),
            },
            // Named as what it is in Erlang, since it is the most likely mistake.
            'A'..='Z' | '_' => Err(self.error("a variable is not a term")),
            '\'' => Ok(Token::Atom(self.quoted('\'')?.into_iter().collect())),
            '"' => Ok(Token::String(self.quoted('"')?)),
            '$' => self.character(),
            _ => self.symbol(c),
        }
    }

    fn symbol(&mut self, c: char) -> Result<Token, ParseError> {
        // Try longer symbols first: `<<` begins with `<`.
        for (text, token) in [
            ("=>", Token::Arrow),
            ("<<", Token::OpenBinary),
            (">>", Token::CloseBinary),
        ] {
            if self.eat(text) {
                return Ok(token);
            }
        }
        if self.eat("#Ref<") {
            return Ok(Token::Ref(self.dotted()?));
        }
        if self.eat("#Port<") {
            return Ok(Token::Port(self.dotted()?));
        }
        if self.rest.starts_with("#Fun<") {
            return Err(self.error("a fun cannot be read from text: only fun m:f/1 can"));
        }
        // Any other `<` begins a pid.
        if self.eat("<") {
            return Ok(Token::Pid(self.dotted()?));
        }
        if ",.|{}[]#:/-+".contains(c) {
            self.bump();
            return Ok(Token::Punctuation(c));
        }
        Err(self.error(format!("'{c}' begins no term")))
    }

    /// Reads numbers with dots between them, up to `>`.
    fn dotted(&mut self) -> Result<Vec<u64>, ParseError> {
        let mut numbers = Vec::new();
        loop {
            // An empty number fails in `parse`, too.
            let digits = self.take_while(|c| c.is_ascii_digit());
            let number = digits
                .parse()
                .map_err(|_| self.error("expected a number below 2^64"))?;
            numbers.push(number);
            if self.eat(">") {
                return Ok(numbers);
            }
            if !self.eat(".") {
                return Err(self.error("expected '.' or '>'"));
            }
        }
    }

    fn number(&mut self) -> Result<Token, ParseError> {
        let whole = self.digits(10)?;
        // The digits were a base.
        if self.rest.starts_with('#') {
            return self.based(&whole);
        }
        // A fraction needs a digit after the dot. Otherwise the dot is the full stop after a
        // term.
        let mut ahead = self.rest.chars();
        let fraction_follows =
            ahead.next() == Some('.') && ahead.next().is_some_and(|c| c.is_ascii_digit());
        if !fraction_follows {
            return Ok(Token::Integer(parse_int(&whole, 10)));
        }
        self.bump();
        let mut text = format!("{whole}.{}", self.digits(10)?);
        // An exponent follows only a fraction, as in Erlang.
        if self.peek().is_some_and(|c| c == 'e' || c == 'E') {
            self.bump();
            text.push('e');
            if let Some(sign @ ('-' | '+')) = self.peek() {
                self.bump();
                text.push(sign);
            }
            text += &self.digits(10)?;
        }
        // Rust parses a large exponent as infinity.
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Token::Float(float)),
            _ => Err(self.error(format!("{text} is beyond the range of floats"))),
        }
    }

    /// Reads the rest of an integer after `base#`.
    fn based(&mut self, base: &str) -> Result<Token, ParseError> {
        let base = match base.parse::<u32>() {
            Ok(base @ 2..=36) => base,
            _ => return Err(self.error("a number's base is 2 to 36")),
        };
        self.bump();
        let digits = self.digits(base)?;
        Ok(Token::Integer(parse_int(&digits, base)))
    }

    /// Reads the digits of a number in a base, at least one. There may be single underscores
    /// between them, which are left out.
    fn digits(&mut self, base: u32) -> Result<String, ParseError> {
        // A number begins with a digit, not with an underscore.
        let mut digits = self.take_while(|c| c.is_digit(base)).to_owned();
        if digits.is_empty() {
            return Err(self.error("expected a digit"));
        }
        while self.peek() == Some('_') {
            self.bump();
            let more = self.take_while(|c| c.is_digit(base));
            if more.is_empty() {
                return Err(self.error("expected a digit after '_'"));
            }
            digits += more;
        }
        Ok(digits)
    }

    /// Reads a character literal: `$a`, `$\n`.
    fn character(&mut self) -> Result<Token, ParseError> {
        self.bump();
        let c = match self.bump() {
            Some('\\') => self.escape()?,
            Some(c) => c,
            None => return Err(self.error("expected a character after '$'")),
        };
        Ok(Token::Integer(BigInt::from(u32::from(c))))
    }

    fn quoted(&mut self, quote: char) -> Result<Vec<char>, ParseError> {
        // Make the error first: it names the position of the opening quote.
        let open = self.error(format!("no closing {quote}"));
        self.bump();
        let mut text = Vec::new();
        loop {
            match self.bump() {
                None => return Err(open),
                Some(c) if c == quote => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                Some(c) => text.push(c),
            }
        }
    }

    /// Reads what follows a backslash.
    fn escape(&mut self) -> Result<char, ParseError> {
        let Some(c) = self.bump() else {
            return Err(self.error("expected a character after '\\'"));
        };
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            's' => ' ',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'e' => '\u{1b}',
            'd' => '\u{7f}',
            '0'..='7' => return self.octal(c),
            'x' => return self.hexadecimal(),
            // As in Erlang, a backslash in front of any other character stands for the character.
            '^' => return self.control(),
            other => other,
        })
    }

    fn octal(&mut self, first: char) -> Result<char, ParseError> {
        // The first of up to three digits has been read.
        let mut code = first as u32 - '0' as u32;
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else {
                break;
            };
            self.bump();
            code = code * 8 + digit;
        }
        self.code_point(code)
    }

    fn hexadecimal(&mut self) -> Result<char, ParseError> {
        let digits = if self.eat("{") {
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            if !self.eat("}") {
                return Err(self.error("expected '}' after \\x{...}"));
            }
            digits
        } else {
            // Without braces, there are exactly two digits.
            let two = self.rest.get(..2).unwrap_or("");
            let is_digits = two.chars().all(|c| c.is_ascii_hexdigit());
            let two = if is_digits { two } else { "" };
            two.chars().for_each(|_| {
                self.bump();
            });
            two
        };
        // Too many digits are an error, as they name no character.
        match u32::from_str_radix(digits, 16) {
            Ok(code) => self.code_point(code),
            Err(_) => Err(self.error("expected hexadecimal digits after \\x")),
        }
    }

    fn control(&mut self) -> Result<char, ParseError> {
        match self.bump() {
            Some(c @ '@'..='_') => self.code_point(c as u32 - '@' as u32),
            Some(c @ 'a'..='z') => self.code_point(c as u32 - '`' as u32),
            _ => Err(self.error("expected a letter after \\^")),
        }
    }

    fn code_point(&self, code: u32) -> Result<char, ParseError> {
        char::from_u32(code).ok_or_else(|| self.error(format!("{code} is no character")))
    }
}

/// Whether a character may be in an unquoted atom after the first one.
fn in_name(c: char) -> bool {
    matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '@' | 'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ÿ')
}

/// The value of digits, which are known to be valid in the base.
fn parse_int(digits: &str, base: u32) -> BigInt {
    BigInt::parse_bytes(digits.as_bytes(), base).unwrap_or_default()
}
