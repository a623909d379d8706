//! Numbers for readers.

use crate::table;

/// For an axis or a heading: `700`, `7 k`, `2.1 M`, `0.05`.
pub fn short(number: f64) -> String {
    let units = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let unit = units.into_iter().find(|(size, _)| number.abs() >= *size);
    let (size, unit) = unit.unwrap_or((1.0, ""));
    plain(number / size, 3) + unit
}

/// For a table: four significant digits, thousands apart: `12 340`, `41.5`, `0.0712`.
pub fn figure(number: f64) -> String {
    let text = plain(number, 4);
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    separated(whole) + rest
}

/// For a table whose columns are compared: at least three significant digits, two decimals below
/// ten: `0.50`, `31.2`, `1 204`.
pub fn table(number: f64) -> String {
    let decimals = match number.abs() {
        size if number.fract() == 0.0 && size >= 3.0 => 0,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    grouped(&format!("{number:.decimals$}"))
}

/// Separates the thousands of a whole number. Returns other texts as they are.
pub fn grouped(text: &str) -> String {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => separated(text),
        false => text.to_string(),
    }
}

/// A factor: `1.52×`.
pub fn times(factor: f64) -> String {
    plain(factor, 3) + "×"
}

/// So many significant digits, without zeros at the end of decimals. All digits before the point
/// are kept.
fn plain(number: f64, digits: i32) -> String {
    if number == 0.0 || !number.is_finite() {
        return (number + 0.0).to_string();
    }
    let decimals = (digits - 1 - number.abs().log10().floor() as i32).clamp(0, 12);
    let text = format!("{number:.*}", decimals as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Separates the thousands with narrow no-break spaces, from five digits on.
fn separated(whole: &str) -> String {
    let digits = whole.trim_start_matches('-');
    match digits.parse() {
        Ok(number) if digits.len() >= 5 => {
            whole.replace(digits, &table::grouped(number).replace(',', "\u{202f}"))
        }
        _ => whole.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let axis = [0.0, 700.0, 7e3, 2_097_152.0, 0.05, 1e9, 54e6].map(short);
        assert_eq!(axis, ["0", "700", "7 k", "2.1 M", "0.05", "1 G", "54 M"]);
        let figures = [41.5, 0.0712, 12_340.0, 1_234_567.0, 1000.0, -54_321.0].map(figure);
        let figures = figures.map(|text| text.replace('\u{202f}', " "));
        let right = ["41.5", "0.0712", "12 340", "1 234 567", "1000", "-54 321"];
        assert_eq!(figures, right);
        assert_eq!(times(1.5), "1.5×");
    }
}
