//! JSON answers as tables for people.

use serde_json::Value;

/// A list of objects, or of lists, as aligned columns; numbers stand right.
pub(crate) fn table(rows: &[Value], columns: &[(&str, &str)]) -> String {
    if rows.is_empty() {
        return "(none)\n".to_owned();
    }
    let cell = |row: &Value, field: &str| {
        let value = match field.parse::<usize>() {
            Ok(index) => &row[index],
            Err(_) => &row[field],
        };
        match value {
            Value::String(text) => text.clone(),
            Value::Null => "-".to_owned(),
            other => other.to_string(),
        }
    };
    let cells: Vec<Vec<String>> = rows.iter().map(|row| columns.iter().map(|(_, field)| cell(row, field)).collect()).collect();
    let width = |column: usize| {
        let longest = cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        longest.max(columns[column].0.chars().count())
    };
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let right: Vec<bool> = (0..columns.len()).map(|column| cells.iter().all(|row| is_number(&row[column]))).collect();
    let line = |texts: Vec<&str>| {
        let padded = texts.iter().enumerate().map(|(column, text)| {
            let width = width(column);
            if right[column] { format!("{text:>width$}") } else { format!("{text:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut out = line(columns.iter().map(|(title, _)| *title).collect());
    for row in &cells {
        out += &line(row.iter().map(String::as_str).collect());
    }
    out
}

/// The fields of one object, one a line.
pub(super) fn fields(value: &Value) -> String {
    let Value::Object(map) = value else { return format!("{value}\n") };
    let width = map.keys().map(String::len).max().unwrap_or(0);
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    map.iter().map(|(name, value)| format!("{name:<width$}  {}\n", text(value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let rows = [json!({"asset": "BTC", "available": "1.5"}), json!({"asset": "USD", "available": null})];
        let text = table(&rows, &[("asset", "asset"), ("free", "available")]);
        assert_eq!(text, "asset  free\nBTC     1.5\nUSD       -\n");
        assert_eq!(table(&[json!(["1", "20"])], &[("price", "0"), ("size", "1")]), "price  size\n    1    20\n");
        assert_eq!(table(&[], &[("a", "a")]), "(none)\n");
    }
}
