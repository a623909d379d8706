//! Numbers as people read them.

/// For an axis or a heading: `700`, `7 k`, `2.1 M`, `0.05`.
pub fn short(number: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    for (size, unit) in UNITS {
        if number.abs() >= size {
            return plain(number / size, 3) + unit;
        }
    }
    plain(number, 3)
}

/// For a table: four digits that count, thousands apart: `12 340`, `41.5`, `0.0712`.
pub fn figure(number: f64) -> String {
    let text = plain(number, 4);
    let (whole, rest) = text
        .find('.')
        .map_or((text.as_str(), ""), |dot| text.split_at(dot));
    apart(whole) + rest
}

/// For a table whose columns are compared: at least three digits that count, two of them behind the
/// point below ten: `0.50`, `31.2`, `1 204`.
pub fn table(number: f64) -> String {
    let decimals = match number.abs() {
        _ if number.fract() == 0.0 && number.abs() >= 3.0 => 0,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    grouped(&format!("{number:.decimals$}"))
}

/// A whole number in groups of three digits, from five digits on; anything else as it is.
pub fn grouped(text: &str) -> String {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        apart(text)
    } else {
        text.to_string()
    }
}

/// A factor: `1.52×`.
pub fn times(factor: f64) -> String {
    plain(factor, 3) + "×"
}

/// So many digits that count, but no digit before the point is dropped and no zero stands at the
/// end behind it.
fn plain(number: f64, digits: i32) -> String {
    if number == 0.0 || !number.is_finite() {
        return if number == 0.0 {
            "0".into()
        } else {
            number.to_string()
        };
    }
    // Digits before the point count, too. So a large number has no decimals.
    let decimals = (digits - 1 - number.abs().log10().floor() as i32).clamp(0, 12);
    let text = format!("{number:.*}", decimals as usize);
    // Zeros at the end are dropped only behind a point.
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

/// Digits in groups of three, with narrow blanks that don't break, from five digits on.
fn apart(whole: &str) -> String {
    let digits = whole.trim_start_matches('-').len();
    if digits < 5 {
        return whole.to_string();
    }
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        // A blank before each group of three, counted from the end.
        let left = whole.len() - i;
        if i > 0 && left.is_multiple_of(3) && !out.ends_with('-') {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let short_ones = [0.0, 700.0, 7e3, 2_097_152.0, 0.05, 1e9, 54e6].map(short);
        assert_eq!(
            short_ones,
            ["0", "700", "7 k", "2.1 M", "0.05", "1 G", "54 M"]
        );
        let figures = [41.5, 0.0712, 12_340.0, 1_234_567.0, 1000.0, -54_321.0].map(figure);
        let want = [
            "41.5",
            "0.0712",
            "12\u{202f}340",
            "1\u{202f}234\u{202f}567",
            "1000",
            "-54\u{202f}321",
        ];
        assert_eq!(figures, want);
        assert_eq!(times(1.5), "1.5×");
    }
}
