//! JSON answers as tables for people.

use serde_json::Value;
use time::OffsetDateTime;

/// A list of objects, or of lists, as aligned columns; numbers stand right.
#[must_use]
pub fn table(rows: &[Value], columns: &[(&str, &str)]) -> String {
    if rows.is_empty() {
        return "(none)\n".to_owned();
    }
    let cell = |row: &Value, field: &str| match field.parse::<usize>() {
        Ok(index) => text("", &row[index]),
        Err(_) => text(field, &row[field]),
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
#[must_use]
pub fn fields(value: &Value) -> String {
    fields_from(value, &[])
}

/// The same, beginning with these.
#[must_use]
pub fn fields_from(value: &Value, first: &[&str]) -> String {
    let Value::Object(map) = value else { return format!("{value}\n") };
    let listed = first.iter().filter_map(|name| map.get_key_value(*name));
    let others = map.iter().filter(|(name, _)| !first.contains(&name.as_str()));
    let lines: Vec<(&str, String)> = listed.chain(others).map(|(name, value)| (label(name), text(name, value))).collect();
    let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    lines.iter().map(|(label, text)| format!("{label:<width$}  {text}\n")).collect()
}

/// A field's name without the unit, which its text has.
fn label(name: &str) -> &str {
    ["_ns", "_permille"].iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name)
}

/// What a field of this name says, for people: times as times, durations in their unit, nothing as JSON.
fn text(name: &str, value: &Value) -> String {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    match (value, number) {
        (Value::Null, _) => "-".to_owned(),
        (_, Some(ns)) if is_time(name) => time(ns),
        (_, Some(ns)) if name.ends_with("_ns") => duration(ns),
        (_, Some(permille)) if name.ends_with("_permille") => format!("{}.{} %", permille / 10, permille % 10),
        (Value::String(text), _) => text.clone(),
        (Value::Array(items), _) => items.iter().map(|item| text("", item)).collect::<Vec<_>>().join(" "),
        (Value::Object(map), _) => {
            map.iter().map(|(name, value)| format!("{} {}", label(name), text(name, value))).collect::<Vec<_>>().join(", ")
        }
        (Value::Bool(_) | Value::Number(_), _) => value.to_string(),
    }
}

/// Whether nanoseconds of this name count from the Unix epoch.
fn is_time(name: &str) -> bool {
    name == "time_ns" || ["_time_ns", "_at_ns", "_from_ns"].iter().any(|end| name.ends_with(end))
}

fn time(ns: u64) -> String {
    if ns == 0 {
        return "-".to_owned();
    }
    let at = OffsetDateTime::from_unix_timestamp_nanos(ns.into()).expect("2^64 nanoseconds end in the year 2554");
    let ((year, month, day), (hour, minute, second)) = (at.to_calendar_date(), at.to_hms());
    let (month, ms) = (u8::from(month), at.millisecond());
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03} UTC")
}

fn duration(ns: u64) -> String {
    let (unit_ns, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        1_000_000_000.. => (1_000_000_000, "s"),
    };
    format!("{}.{} {unit}", ns / unit_ns, ns % unit_ns * 10 / unit_ns)
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

    #[test]
    fn people_read_times_durations_and_no_json() {
        let status = json!({
            "venue": "walras", "demo": {"progress_permille": 13, "speed": "20x"}, "fair_access": null, "ready": true,
            "started_at_ns": "1795391836819745417", "bound_ns": "1234567", "delay_ns": 250, "list": ["a", "b"],
        });
        let lines = "venue        walras\nready        true\nbound        1.2 ms\ndelay        250 ns\n\
            demo         progress 1.3 %, speed 20x\nfair_access  -\nlist         a b\nstarted_at   2026-11-22 23:57:16.819 UTC\n";
        assert_eq!(fields_from(&status, &["venue", "ready", "gone"]), lines);
        let trades = [json!({"time_ns": "1795391836819745417", "price": "1"})];
        assert_eq!(table(&trades, &[("time", "time_ns")]).lines().last(), Some("2026-11-22 23:57:16.819 UTC"));
    }
}
