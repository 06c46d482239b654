use std::{collections::HashMap, thread};

use crate::{
    AttachError, BearHandler, ClipboardHandler, CommandHandler, Context, DataHandler, Declared, Delivered,
    FileHandler, Handler, HttpHandler, McpHandler, Resolved, StdinHandler,
};

/// One handler for each kind of thing that can be attached.
const HANDLERS: [&(dyn Handler + Sync); 8] = [
    &FileHandler,
    &HttpHandler,
    &CommandHandler,
    &DataHandler,
    &StdinHandler,
    &ClipboardHandler,
    &McpHandler,
    &BearHandler,
];

/// Resolves declarations and excludes, each with the handler of its scheme, all handlers at once.
///
/// All or nothing, unless [`Unavailable::Skip`](crate::Unavailable::Skip). The result is in declared
/// order. Refuses excludes without anything to exclude from, and more bytes in all than are allowed.
pub fn resolve(declared: &[Declared], context: &Context<'_>) -> Result<Resolved, AttachError> {
    let parts: Vec<Part> = HANDLERS.iter().filter_map(|handler| Part::of(*handler, declared)).collect();
    if let Some(progress) = context.progress {
        // What a directory gives is not known before it is walked.
        let is_counted = |one: &&Declared| one.source.scheme() != "file";
        progress.expect(declared.iter().filter(is_counted).count(), 0);
    }
    let results: Vec<Result<Resolved, AttachError>> = match &parts[..] {
        [only] => vec![only.handler.resolve(&only.declared, context)],
        parts => thread::scope(|scope| {
            let run = |part: &'_ Part| part.handler.resolve(&part.declared, context);
            let running: Vec<_> = parts.iter().map(|part| scope.spawn(move || run(part))).collect();
            let join = |running: thread::ScopedJoinHandle<'_, _>| {
                running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            running.into_iter().map(join).collect()
        }),
    };
    let mut merged = Merge::default();
    for (part, result) in parts.iter().zip(results) {
        merged.add(part, result?);
    }
    merged.finish(context)
}

/// What one handler resolves.
struct Part {
    handler: &'static (dyn Handler + Sync),
    declared: Vec<Declared>,
    /// Where each is among all.
    indexes: Vec<usize>,
}

impl Part {
    fn of(handler: &'static (dyn Handler + Sync), all: &[Declared]) -> Option<Self> {
        let is_its = |one: &Declared| handler.schemes().contains(&one.source.scheme());
        let (indexes, declared): (Vec<_>, Vec<_>) = all
            .iter()
            .enumerate()
            .filter(|(_, one)| is_its(one))
            .map(|(index, one)| (index, one.clone()))
            .unzip();
        (!declared.is_empty()).then_some(Self { handler, declared, indexes })
    }
}

/// Brings what handlers gave into declared order.
#[derive(Default)]
struct Merge {
    parts: Vec<Resolved>,
    /// Deliveries with the part they are of, their `declared` an index among all.
    delivered: Vec<(usize, Delivered)>,
}

impl Merge {
    fn add(&mut self, part: &Part, mut resolved: Resolved) {
        let place = self.parts.len();
        let delivered = std::mem::take(&mut resolved.delivered).into_iter();
        let among_all =
            |delivered: Delivered| Delivered { declared: part.indexes[delivered.declared], ..delivered };
        self.delivered.extend(delivered.map(|delivered| (place, among_all(delivered))));
        self.parts.push(resolved);
    }

    fn finish(mut self, context: &Context<'_>) -> Result<Resolved, AttachError> {
        let mut merged = Resolved::default();
        for part in &mut self.parts {
            merged.notices.append(&mut part.notices);
            merged.totals.files += part.totals.files;
            merged.totals.bytes += part.totals.bytes;
            merged.totals.known += part.totals.known;
        }
        let (files, size, limit) = (merged.totals.files, merged.totals.bytes, context.limits.max_total_bytes);
        if size > limit {
            return Err(AttachError::TooManyBytes { files, size, limit });
        }
        let mut resources: Vec<Vec<Option<_>>> =
            self.parts.into_iter().map(|part| part.resources.into_iter().map(Some).collect()).collect();
        let mut places = HashMap::new();
        self.delivered.sort_by_key(|(_, delivered)| delivered.declared);
        for (part, mut delivered) in self.delivered {
            for index in &mut delivered.resources {
                let taken = resources[part][*index].take();
                let place = *places.entry((part, *index)).or_insert(merged.resources.len());
                merged.resources.extend(taken);
                *index = place;
            }
            merged.delivered.push(delivered);
        }
        Ok(merged)
    }
}
