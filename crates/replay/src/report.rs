//! Adds up measurements and writes them as JSON or as a table.

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

/// The figures of all replayed conversations.
#[derive(Debug, Default)]
pub struct Report {
    /// The figures of each conversation.
    pub conversations: Vec<Row>,
    /// The number of files below directories that aren't conversations.
    pub skipped_files: u64,
}

/// The figures of a conversation, or the sum of all.
#[derive(Debug, Default)]
pub struct Row {
    /// The path of the recording, or `total`.
    pub path: String,
    /// The name of the program that wrote it.
    pub format: &'static str,
    /// The bytes of tool output in the recording, with line numbers and other additions of tools.
    pub recorded_bytes: u64,
    /// The cost of its requests.
    pub measured: Measured,
    /// The recovered resources by the form of the tool output.
    pub recovered: BTreeMap<String, Recovered>,
    /// The number of skipped items by kind.
    pub skipped: BTreeMap<String, u64>,
    /// Problems that didn't prevent reading.
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
    row.recovered = conversation
        .recovered
        .into_iter()
        .map(|(form, recovered)| (format!("{format} {form}"), recovered))
        .collect();
    for stream in &conversation.streams {
        row.measured += measure(stream);
    }
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
        let mut total = Map::new();
        total.insert("conversations".to_owned(), json!(self.conversations.len()));
        total.extend(figures(&self.total()));
        total.insert("skipped_files".to_owned(), json!(self.skipped_files));
        let conversations: Vec<_> = self.conversations.iter().map(Row::to_json).collect();
        json!({"conversations": conversations, "total": total})
    }
}

impl Row {
    fn to_json(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("path".to_owned(), json!(self.path));
        object.insert("format".to_owned(), json!(self.format));
        object.extend(figures(self));
        object.insert("warnings".to_owned(), json!(self.warnings));
        object
    }
}

/// Returns the figures that conversations and the total have in common.
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
    let shares = shares.with_names().into_iter().map(|(name, share)| {
        let percent = one_decimal(percent(share.bytes, plain.tool_bytes));
        let share = json!({"blocks": share.blocks, "bytes": share.bytes, "percent": percent});
        (name.to_owned(), share)
    });
    let recovered = recovered.iter().map(|(form, recovered)| {
        let recovered = json!({"resources": recovered.resources, "bytes": recovered.bytes});
        (form.clone(), recovered)
    });
    let figures = json!({
        "turns": turns,
        "requests": requests,
        "recorded_bytes": recorded_bytes,
        "plain_bytes": plain.tool_bytes,
        "exact_bytes": exact.tool_bytes,
        "delivered_bytes": delivered.tool_bytes,
        "exact_saved_percent": one_decimal(saved_bytes(exact, plain)),
        "delivered_saved_percent": one_decimal(saved_bytes(delivered, plain)),
        "plain_weighted": weighted_bytes(plain),
        "exact_weighted": weighted_bytes(exact),
        "delivered_weighted": weighted_bytes(delivered),
        "exact_weighted_saved_percent": one_decimal(saved_weighted(exact, plain)),
        "delivered_weighted_saved_percent": one_decimal(saved_weighted(delivered, plain)),
        "shares": shares.collect::<Map<_, _>>(),
        "recovered": recovered.collect::<Map<_, _>>(),
        "skipped": skipped,
    });
    match figures {
        Value::Object(figures) => figures,
        _ => unreachable!("`json!` with braces makes an object"),
    }
}

/// Returns the percentage of tool output that isn't sent. Without any output it is 0.
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

/// Returns the weighted cost in uncached bytes.
fn weighted_bytes(cost: &Cost) -> f64 {
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
        weighted_bytes(plain),
        saved_weighted(exact, plain),
        saved_weighted(delivered, plain),
        row.path
    )
}

fn write_shares(f: &mut fmt::Formatter<'_>, total: &Row) -> fmt::Result {
    let plain = total.measured.plain.tool_bytes;
    f.write_str("Tool output is delivered as:\n")?;
    for (name, Share { blocks, bytes }) in total.measured.shares.with_names() {
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
        "\nRecorded tool output: {recorded} bytes. Recovered as resources:"
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
            "  file that isn't a conversation: {}",
            report.skipped_files
        )?;
    }
    if !skipped.is_empty() {
        write!(f, "Skipped:\n{skipped}")?;
    }
    report
        .conversations
        .iter()
        .flat_map(|row| &row.warnings)
        .try_for_each(|warning| writeln!(f, "{warning}"))
}
