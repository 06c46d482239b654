//! Adds up what was measured, as JSON or as a table.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use serde_json::{Map, Value, json};

use crate::{
    Error,
    find::Recording,
    measure::{Cost, Measured, Share, measure},
    read::{self, Recovered},
};

/// All conversations that were replayed.
#[derive(Debug, Default)]
pub struct Report {
    /// One by one.
    pub conversations: Vec<Row>,
    /// How many files of directories are no conversations.
    pub skipped_files: u64,
}

/// A conversation that was replayed, or all of them.
#[derive(Debug, Default)]
pub struct Row {
    /// Where it is.
    pub path: String,
    /// What wrote it.
    pub format: &'static str,
    /// Bytes of tool output as they were recorded, numbers of lines and the like among them.
    pub recorded_bytes: u64,
    /// What it costs.
    pub measured: Measured,
    /// Resources by the form they were recovered from.
    pub recovered: BTreeMap<String, Recovered>,
    /// What was left out, and how often.
    pub skipped: BTreeMap<String, u64>,
    /// What was found amiss and read all the same.
    pub warnings: Vec<String>,
}

/// Reads and measures a recording.
pub fn replay(recording: &Recording) -> Result<Row, Error> {
    let conversation = read::conversation(recording)?;
    let format = recording.format.name();
    let mut row = Row {
        path: recording.path.display().to_string(),
        format,
        recorded_bytes: conversation.recorded_bytes,
        skipped: conversation.skipped,
        warnings: conversation.warnings,
        ..Row::default()
    };
    let named = |(form, recovered)| (format!("{format} {form}"), recovered);
    row.recovered = conversation.recovered.into_iter().map(named).collect();
    conversation
        .streams
        .iter()
        .for_each(|stream| row.measured += measure(stream));
    Ok(row)
}

impl Report {
    /// Returns the sum of all rows.
    #[must_use]
    pub fn total(&self) -> Row {
        let mut total = Row {
            path: "total".to_owned(),
            ..Row::default()
        };
        for row in &self.conversations {
            total.recorded_bytes += row.recorded_bytes;
            total.measured += row.measured;
            for (form, recovered) in &row.recovered {
                let sum = total.recovered.entry(form.clone()).or_default();
                sum.resources += recovered.resources;
                sum.bytes += recovered.bytes;
            }
            for (what, count) in &row.skipped {
                *total.skipped.entry(what.clone()).or_default() += count;
            }
        }
        total
    }

    /// Returns the report as JSON: `{"conversations": […], "total": {…}}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let conversation = |row: &Row| {
            let mut object = Map::new();
            object.insert("path".to_owned(), json!(row.path));
            object.insert("format".to_owned(), json!(row.format));
            object.extend(figures(row));
            object.insert("warnings".to_owned(), json!(row.warnings));
            Value::Object(object)
        };
        let mut total = Map::new();
        total.insert("conversations".to_owned(), json!(self.conversations.len()));
        total.extend(figures(&self.total()));
        total.insert("skipped_files".to_owned(), json!(self.skipped_files));
        let conversations: Vec<Value> = self.conversations.iter().map(conversation).collect();
        json!({"conversations": conversations, "total": total})
    }
}

fn figures(row: &Row) -> Map<String, Value> {
    let Row {
        recorded_bytes,
        measured,
        recovered,
        skipped,
        ..
    } = row;
    let Measured {
        plain,
        exact,
        delivered,
        shares,
        turns,
        requests,
    } = measured;
    let share = |(name, share): (&str, Share)| {
        let percent = one_decimal(percent(share.bytes, plain.tool_bytes));
        (
            name.to_owned(),
            json!({"blocks": share.blocks, "bytes": share.bytes, "percent": percent}),
        )
    };
    let form = |(form, recovered): (&String, &Recovered)| {
        (
            form.clone(),
            json!({"resources": recovered.resources, "bytes": recovered.bytes}),
        )
    };
    let figures = json!({
        "turns": turns,
        "requests": requests,
        "recorded_bytes": recorded_bytes,
        "plain_bytes": plain.tool_bytes,
        "exact_bytes": exact.tool_bytes,
        "delivered_bytes": delivered.tool_bytes,
        "exact_saved_percent": one_decimal(saved_bytes(exact, plain)),
        "delivered_saved_percent": one_decimal(saved_bytes(delivered, plain)),
        "plain_weighted": weighted(plain),
        "exact_weighted": weighted(exact),
        "delivered_weighted": weighted(delivered),
        "exact_weighted_saved_percent": one_decimal(saved_weighted(exact, plain)),
        "delivered_weighted_saved_percent": one_decimal(saved_weighted(delivered, plain)),
        "shares": shares.named().into_iter().map(share).collect::<Map<_, _>>(),
        "recovered": recovered.iter().map(form).collect::<Map<_, _>>(),
        "skipped": skipped,
    });
    match figures {
        Value::Object(figures) => figures,
        _ => unreachable!("it is written as an object"),
    }
}

fn saved_bytes(cost: &Cost, plain: &Cost) -> f64 {
    percent(plain.tool_bytes, plain.tool_bytes) - percent(cost.tool_bytes, plain.tool_bytes)
}

fn saved_weighted(cost: &Cost, plain: &Cost) -> f64 {
    percent(plain.weighted, plain.weighted) - percent(cost.weighted, plain.weighted)
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

fn one_decimal(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Returns the weighted cost in bytes.
fn weighted(cost: &Cost) -> f64 {
    one_decimal(cost.weighted as f64 / 100.0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        writeln!(
            f,
            "{:>9} {:>9} {:>9} {:>6} {:>6}  {:>11} {:>6} {:>6}  conversation",
            "plain", "exact", "delivered", "exact", "deliv.", "weighted", "exact", "deliv."
        )?;
        for row in self.conversations.iter().chain([&total]) {
            write_row(f, row)?;
        }
        writeln!(f)?;
        write_shares(f, &total)?;
        write_notes(f, self, &total)
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
    let Measured {
        plain,
        exact,
        delivered,
        ..
    } = &row.measured;
    writeln!(
        f,
        "{:>9} {:>9} {:>9} {:>5.1}% {:>5.1}%  {:>11.0} {:>5.1}% {:>5.1}%  {}",
        plain.tool_bytes,
        exact.tool_bytes,
        delivered.tool_bytes,
        saved_bytes(exact, plain),
        saved_bytes(delivered, plain),
        weighted(plain),
        saved_weighted(exact, plain),
        saved_weighted(delivered, plain),
        row.path
    )
}

fn write_shares(f: &mut fmt::Formatter<'_>, total: &Row) -> fmt::Result {
    let plain = total.measured.plain.tool_bytes;
    f.write_str("Tool output is delivered as:\n")?;
    for (name, Share { blocks, bytes }) in total.measured.shares.named() {
        if blocks > 0 {
            let (name, percent) = (name.replace('_', " "), percent(bytes, plain));
            writeln!(
                f,
                "  {name:<8} {blocks:>6} blocks {bytes:>9} bytes {percent:>5.1}%"
            )?;
        }
    }
    Ok(())
}

fn write_notes(f: &mut fmt::Formatter<'_>, report: &Report, total: &Row) -> fmt::Result {
    let recorded = total.recorded_bytes;
    writeln!(
        f,
        "\nTool output as it was recorded: {recorded} bytes. Of it these became resources:"
    )?;
    for (form, Recovered { resources, bytes }) in &total.recovered {
        writeln!(f, "  {form}: {resources} resources, {bytes} bytes")?;
    }
    if total.recovered.is_empty() {
        f.write_str("  none\n")?;
    }
    let mut skipped = String::new();
    for (what, count) in &total.skipped {
        writeln!(skipped, "  {what}: {count}")?;
    }
    if report.skipped_files > 0 {
        writeln!(
            skipped,
            "  file that is no conversation: {}",
            report.skipped_files
        )?;
    }
    if !skipped.is_empty() {
        write!(f, "Left out:\n{skipped}")?;
    }
    report
        .conversations
        .iter()
        .flat_map(|row| &row.warnings)
        .try_for_each(|warning| writeln!(f, "{warning}"))
}
