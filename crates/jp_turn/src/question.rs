//! Runs a tool until it has no more questions.

use std::collections::{HashMap, HashSet};

use jp_conversation::{InquiryRequest, InquiryResponse, ToolCallRequest, is_shallow};
use jp_tool::{ContentBlock, InputRequest, ToolResponse};
use serde_json::{Map, Value, json};

use crate::{
    Answerer, Question, Reply, Schema, Tool, Toolbox, excerpt,
    line::{Inquiry, Line},
    plan::Act,
    turnstile::PromptKind,
};

/// How often a tool may run for one call.
const MAX_RUNS: usize = 30;
/// How often one question may be asked in one call.
const MAX_ASKED: usize = 3;
/// How many questions one response may have.
const MAX_QUESTIONS: usize = 50;
/// How large the schema of a question may be, in bytes.
const MAX_SCHEMA_BYTES: usize = 128_000;
/// How large an answer may be, in bytes: it goes to the tool each time it runs again.
const MAX_ANSWER_BYTES: usize = 1_000_000;
/// How many characters of what a tool wrote are shown in a message.
const MAX_SHOWN: usize = 200;

/// Runs a tool, answers its questions and runs it again, until it asks nothing; the last run's response counts.
pub(crate) fn answered(
    call: &ToolCallRequest,
    tool: &Tool,
    toolbox: &Toolbox,
    line: &Line,
    act: &mut Act<'_>,
) -> ToolResponse {
    let mut asking = Asking::new(call, tool, toolbox, line);
    let mut answers = Map::new();
    for _ in 0..MAX_RUNS {
        let response = act(&answers, line);
        match asking.answer(&response, &mut answers) {
            Ok(false) => return response,
            Ok(true) => {}
            Err(reason) => return ToolResponse::from_error(reason),
        }
    }
    let reason = format!(
        "`{}` was run {MAX_RUNS} times and still asks questions.",
        tool.name
    );
    ToolResponse::from_error(reason)
}

/// The questions of one call.
pub(crate) struct Asking<'a> {
    call: &'a ToolCallRequest,
    tool: &'a Tool,
    toolbox: &'a Toolbox,
    line: &'a Line,
    /// How often each question was asked.
    asked: HashMap<String, usize>,
}

/// What the person was shown of a response with questions.
pub(crate) struct Told<'r> {
    response: &'r ToolResponse,
    /// How many of its blocks.
    until: usize,
}

impl<'r> Told<'r> {
    pub(crate) fn new(response: &'r ToolResponse) -> Self {
        Self { response, until: 0 }
    }

    /// Returns the blocks before the question at `index` that were not shown yet.
    fn before(&mut self, index: usize) -> Vec<ContentBlock> {
        let start = std::mem::replace(&mut self.until, index + 1);
        context(&self.response.content[start..index])
    }
}

/// A question that can be asked.
pub(crate) struct Checked {
    /// Without a default that is no answer.
    pub(crate) question: InputRequest,
    schema: Schema,
}

impl<'a> Asking<'a> {
    pub(crate) fn new(
        call: &'a ToolCallRequest,
        tool: &'a Tool,
        toolbox: &'a Toolbox,
        line: &'a Line,
    ) -> Self {
        Self {
            call,
            tool,
            toolbox,
            line,
            asked: HashMap::new(),
        }
    }

    /// Answers the questions of a response, in order; returns whether there were any.
    fn answer(
        &mut self,
        response: &ToolResponse,
        answers: &mut Map<String, Value>,
    ) -> Result<bool, String> {
        let questions = self.questions(response)?;
        // Nobody is asked in vain.
        let checked: Vec<_> = questions
            .iter()
            .map(|(_, question)| self.checked(question))
            .collect::<Result<_, _>>()?;
        let mut told = Told::new(response);
        for ((index, question), checked) in questions.iter().zip(&checked) {
            self.count(question)?;
            let answer = self.answer_to_checked(checked, *index, &mut told)?;
            answers.insert(question.id.clone(), answer);
        }
        self.show_rest(told);
        Ok(!questions.is_empty())
    }

    /// Shows the person the blocks after the last question that they answered.
    pub(crate) fn show_rest(&self, told: Told<'_>) {
        let rest = context(&told.response.content[told.until..]);
        if told.until > 0 && !rest.is_empty() {
            self.line.show(&self.tool.name, rest);
        }
    }

    /// Returns the questions of a response with their places.
    pub(crate) fn questions<'r>(
        &self,
        response: &'r ToolResponse,
    ) -> Result<Vec<(usize, &'r InputRequest)>, String> {
        let name = &self.tool.name;
        let blocks = response.content.iter().enumerate();
        let questions: Vec<_> = blocks
            .filter_map(|(index, block)| match block {
                ContentBlock::Question { question } => Some((index, question)),
                _ => None,
            })
            .collect();
        if questions.len() > MAX_QUESTIONS {
            let count = questions.len();
            return Err(format!(
                "`{name}` asks {count} questions at once; {MAX_QUESTIONS} can be answered."
            ));
        }
        let mut ids = HashSet::new();
        match questions
            .iter()
            .find(|(_, question)| !ids.insert(&question.id))
        {
            Some((_, twice)) => Err(format!(
                "`{name}` asks two questions with the id {:?} at once, so their answers can't be told apart.",
                shortened(&twice.id)
            )),
            None => Ok(questions),
        }
    }

    fn count(&mut self, question: &InputRequest) -> Result<(), String> {
        let times = self.asked.entry(question.id.clone()).or_default();
        *times += 1;
        if *times <= MAX_ASKED {
            return Ok(());
        }
        let (name, text) = (&self.tool.name, shortened(&question.text));
        Err(format!(
            "`{name}` asked {text:?} {MAX_ASKED} times in one call and was given an answer each time."
        ))
    }

    /// Answers one question, as the configuration says or by asking; the error is for the model.
    ///
    /// The question is block `index` of the response. The person is shown the blocks before it that they were not
    /// `told` yet; the model, which is asked anew each time, all of them.
    pub(crate) fn answer_to(
        &self,
        question: &InputRequest,
        index: usize,
        told: &mut Told<'_>,
    ) -> Result<Value, String> {
        self.answer_to_checked(&self.checked(question)?, index, told)
    }

    fn answer_to_checked(
        &self,
        checked: &Checked,
        index: usize,
        told: &mut Told<'_>,
    ) -> Result<Value, String> {
        if let Some(answer) = self.said(checked) {
            return Ok(answer);
        }
        let question = &checked.question;
        match self.tool.questions.get(&question.id) {
            Some(Answerer::Fixed(answer)) => self.fixed(checked, answer),
            Some(Answerer::Assistant) => {
                self.infer(checked, context(&told.response.content[..index]))
            }
            Some(Answerer::User) | None => self.ask(checked, told.before(index)),
        }
    }

    /// Checks that a question can be answered.
    pub(crate) fn checked(&self, question: &InputRequest) -> Result<Checked, String> {
        let (name, text) = (&self.tool.name, shortened(&question.text));
        let bytes = Value::Object(question.schema.clone()).to_string().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!(
                "`{name}` asks {text:?} with a schema of {bytes} bytes; {MAX_SCHEMA_BYTES} are read."
            ));
        }
        if !question.schema.values().all(is_shallow) {
            return Err(format!(
                "`{name}` asks {text:?} with a schema that is nested more than 100 levels deep."
            ));
        }
        let schema = Schema::compile(&question.schema).map_err(|error| {
            format!("`{name}` asks {text:?} with a schema that is none: {error}")
        })?;
        let mut checked = Checked {
            question: question.clone(),
            schema,
        };
        let fault = question
            .default
            .as_ref()
            .and_then(|default| checked.fitting(default).err());
        if let Some(fault) = fault {
            checked.question.default = None;
            self.line.notice(format!(
                "the default of {text:?}, which `{name}` asks, does not fit: {fault}"
            ));
        }
        Ok(checked)
    }

    fn fixed(&self, checked: &Checked, answer: &Value) -> Result<Value, String> {
        let fits = checked.fitting(answer);
        fits.map(|()| answer.clone()).map_err(|faults| {
            let text = shortened(&checked.question.text);
            format!(
                "`{}` asks {text:?}, and the answer at {} does not fit: {faults}",
                self.tool.name,
                self.setting(&checked.question.id)
            )
        })
    }

    /// Returns what the person said for the rest of the turn.
    fn said(&self, checked: &Checked) -> Option<Value> {
        let key = (self.tool.name.clone(), checked.question.id.clone());
        let answer = self.toolbox.said().answers.get(&key).cloned();
        answer.filter(|answer| checked.fitting(answer).is_ok())
    }

    /// Asks the person until the answer fits.
    fn ask(&self, checked: &Checked, context: Vec<ContentBlock>) -> Result<Value, String> {
        let question = &checked.question;
        let name = &self.tool.name;
        let _asking = self.line.asking(PromptKind::Question);
        if let Some(answer) = self.said(checked) {
            return Ok(answer);
        }
        let mut asked = Question {
            tool: name.clone(),
            server: None,
            context,
            input: question.clone(),
            fault: None,
        };
        loop {
            let (answer, is_for_turn) = match self.line.ask(asked.clone()) {
                Some(Reply::Once(answer)) => (answer, false),
                Some(Reply::ForTurn(answer)) => (answer, true),
                Some(Reply::Declined) => {
                    let text = shortened(&question.text);
                    return Err(format!(
                        "The person gave no answer to {text:?}, which `{name}` asks."
                    ));
                }
                Some(Reply::Interrupted) => return Err("The call was interrupted.".to_owned()),
                None if self.line.is_cancelled() => {
                    return Err("The call was interrupted.".to_owned());
                }
                None => return Err(self.declined(question)),
            };
            match checked.fitting(&answer) {
                Ok(()) => {
                    self.keep(question, &answer, "user");
                    if is_for_turn {
                        let key = (name.clone(), question.id.clone());
                        self.toolbox.said().answers.insert(key, answer.clone());
                    }
                    return Ok(answer);
                }
                Err(faults) => asked.fault = Some(faults),
            }
        }
    }

    fn infer(&self, checked: &Checked, context: Vec<ContentBlock>) -> Result<Value, String> {
        let question = &checked.question;
        let inquiry = Inquiry {
            call: self.call.clone(),
            context,
            input: question.clone(),
        };
        let fitting = |answer: Value| checked.fitting(&answer).map(|()| answer);
        match self.line.infer(inquiry).and_then(fitting) {
            Ok(answer) => {
                self.keep(question, &answer, "assistant");
                Ok(answer)
            }
            Err(_) if self.line.is_cancelled() => Err("The call was interrupted.".to_owned()),
            Err(reason) => {
                self.unanswered(question, &format!("the model gave no answer: {reason}"))
            }
        }
    }

    /// Says that there is no terminal to ask the user on. A default is not the user's answer: they might never give it.
    fn declined(&self, question: &InputRequest) -> String {
        let (name, text, advice) = (
            &self.tool.name,
            shortened(&question.text),
            self.setting(&question.id),
        );
        let reason = "there is no terminal to ask the user on";
        self.line.notice(format!(
            "`{name}` asks {text:?}, but {reason}; set the answer with {advice}"
        ));
        let default = match &question.default {
            Some(default) => format!(
                " Its default, {}, was not used.",
                shortened(&default.to_string())
            ),
            None => String::new(),
        };
        format!(
            "`{name}` asks {text:?}, but {reason}, so the question has no answer.{default} The user can set the answer with {advice}."
        )
    }

    /// Takes the default where the model gives no answer.
    fn unanswered(&self, question: &InputRequest, reason: &str) -> Result<Value, String> {
        let (name, text) = (&self.tool.name, shortened(&question.text));
        if let Some(default) = &question.default {
            self.line.notice(format!(
                "`{name}` asks {text:?}; {reason}, so its default is taken: {default}"
            ));
            self.keep(question, default, "default");
            return Ok(default.clone());
        }
        let advice = self.setting(&question.id);
        self.line.notice(format!(
            "`{name}` asks {text:?}, and {reason}; {advice} can hold the answer"
        ));
        Err(format!(
            "`{name}` asks {text:?}, and {reason}. The answer can be configured at {advice}."
        ))
    }

    /// Returns where the configuration holds the answer to a question.
    fn setting(&self, id: &str) -> String {
        format!(
            "conversation.tools.{}.questions.{}.answer",
            self.tool.name,
            shortened(id)
        )
    }

    /// Has a question and its answer kept, and who gave it: `target`.
    pub(crate) fn keep(&self, question: &InputRequest, answer: &Value, target: &str) {
        let id = self.toolbox.inquiry_id(&self.call.id, &question.id);
        let source = json!({"source": "tool", "name": self.tool.name, "call": self.call.id, "target": target});
        let request = InquiryRequest {
            id: id.clone(),
            source,
            question: question.clone(),
        };
        self.line.keep(
            request,
            InquiryResponse {
                id,
                answer: answer.clone(),
            },
        );
    }
}

impl Checked {
    /// Checks an answer; the error says what is wrong with it.
    pub(crate) fn fitting(&self, answer: &Value) -> Result<(), String> {
        let bytes = answer.to_string().len();
        if bytes > MAX_ANSWER_BYTES {
            return Err(format!(
                "it has {bytes} bytes, and {MAX_ANSWER_BYTES} are the most"
            ));
        }
        if !is_shallow(answer) {
            return Err("it is nested more than 100 levels deep".to_owned());
        }
        self.schema.check_value(answer)
    }
}

/// Returns what of a response is shown with a question.
fn context(blocks: &[ContentBlock]) -> Vec<ContentBlock> {
    let is_shown = |block: &&ContentBlock| !matches!(block, ContentBlock::Question { .. });
    blocks.iter().filter(is_shown).cloned().collect()
}

/// Returns the beginning of what a tool wrote, which may be of any length.
fn shortened(text: &str) -> String {
    excerpt::beginning(text, MAX_SHOWN)
}

#[cfg(test)]
mod tests;
