//! Runs a tool until it has no more questions.

use std::collections::{HashMap, HashSet};

use jp_conversation::{InquiryRequest, InquiryResponse, ToolCallRequest, is_shallow};
use jp_tool::{ContentBlock, InputRequest, ToolResponse};
use serde_json::{Map, Value, json};

use crate::{
    Answerer, Question, Reply, Schema, Tool, Toolbox, excerpt,
    line::{INTERRUPTED, Inquiry, Line},
    plan::Act,
    turnstile::PromptKind,
};

/// The maximum number of runs for one call: a tool that always asks something would run forever.
const MAX_RUNS: usize = 30;
/// The maximum number of times that a tool may ask the same question in one call. It may ask again
/// after an answer that it can't use.
const MAX_ASKED: usize = 3;
/// The maximum number of questions in one response.
const MAX_QUESTIONS: usize = 50;
/// The maximum size of a question's schema, in bytes. The event of the question keeps it.
const MAX_SCHEMA_BYTES: usize = 128_000;
/// The maximum size of an answer, in bytes. The tool receives it each time it runs again.
const MAX_ANSWER_BYTES: usize = 1_000_000;
/// The number of characters of a tool's text in a message.
const MAX_SHOWN: usize = 200;

/// Runs a tool, answers its questions and runs it again, until it asks nothing; the last run's
/// response counts.
pub(crate) fn run_with_answers(
    call: &ToolCallRequest,
    tool: &Tool,
    toolbox: &Toolbox,
    line: &Line,
    act: &mut Act<'_>,
) -> ToolResponse {
    // The tool is stateless: each run starts again with all answers so far.
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
        "`{}` ran {MAX_RUNS} times and still asks questions.",
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
    /// The number of times that each question was asked.
    asked: HashMap<String, usize>,
}

/// The blocks of a response that the user was shown with questions.
pub(crate) struct ShownBlocks<'r> {
    response: &'r ToolResponse,
    /// The number of blocks that were shown.
    until: usize,
}

impl<'r> ShownBlocks<'r> {
    pub(crate) fn new(response: &'r ToolResponse) -> Self {
        Self { response, until: 0 }
    }

    /// Returns the blocks before the question at `index` that were not shown yet.
    fn before(&mut self, index: usize) -> Vec<ContentBlock> {
        let start = std::mem::replace(&mut self.until, index + 1);
        context_blocks(&self.response.content[start..index])
    }
}

/// A question that can be asked.
pub(crate) struct CheckedQuestion {
    /// The question. A default that does not match the schema is removed.
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
        // Check all questions before asking the first: an invalid one would make the user's answers
        // useless.
        let checked: Vec<_> = questions
            .iter()
            .map(|(_, question)| self.check(question))
            .collect::<Result<_, _>>()?;
        let mut told = ShownBlocks::new(response);
        for ((index, question), checked) in questions.iter().zip(&checked) {
            self.count_question(question)?;
            let answer = self.answer_to_checked(checked, *index, &mut told)?;
            answers.insert(question.id.clone(), answer);
        }
        self.show_rest(told);
        Ok(!questions.is_empty())
    }

    /// Shows the user the blocks after the last question that they answered.
    pub(crate) fn show_rest(&self, told: ShownBlocks<'_>) {
        let rest = context_blocks(&told.response.content[told.until..]);
        if told.until > 0 && !rest.is_empty() {
            self.line.show(&self.tool.name, rest);
        }
    }

    /// Returns the questions of a response with the indices of their blocks.
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
                "`{name}` asks {count} questions at once. The limit is {MAX_QUESTIONS}."
            ));
        }
        let mut ids = HashSet::new();
        match questions
            .iter()
            .find(|(_, question)| !ids.insert(&question.id))
        {
            Some((_, twice)) => Err(format!(
                "`{name}` asks two questions with the same id, {:?}, at once.",
                shorten(&twice.id)
            )),
            None => Ok(questions),
        }
    }

    fn count_question(&mut self, question: &InputRequest) -> Result<(), String> {
        let times = self.asked.entry(question.id.clone()).or_default();
        *times += 1;
        if *times <= MAX_ASKED {
            return Ok(());
        }
        let (name, text) = (&self.tool.name, shorten(&question.text));
        Err(format!(
            "`{name}` asked {text:?} {MAX_ASKED} times in one call and got an answer each time."
        ))
    }

    /// Answers one question, as the configuration says or by asking; the error is for the model.
    ///
    /// The question is block `index` of the response. The user is shown the blocks before it that
    /// they have not seen yet. The model is shown all of them, because its requests don't contain
    /// earlier questions.
    pub(crate) fn answer_to(
        &self,
        question: &InputRequest,
        index: usize,
        told: &mut ShownBlocks<'_>,
    ) -> Result<Value, String> {
        self.answer_to_checked(&self.check(question)?, index, told)
    }

    fn answer_to_checked(
        &self,
        checked: &CheckedQuestion,
        index: usize,
        told: &mut ShownBlocks<'_>,
    ) -> Result<Value, String> {
        // The user may have answered for the rest of the turn, also while this call waited.
        if let Some(answer) = self.earlier_answer(checked) {
            return Ok(answer);
        }
        let question = &checked.question;
        match self.tool.questions.get(&question.id) {
            Some(Answerer::Fixed(answer)) => self.fixed_answer(checked, answer),
            Some(Answerer::Assistant) => {
                self.infer(checked, context_blocks(&told.response.content[..index]))
            }
            Some(Answerer::User) | None => self.ask(checked, told.before(index)),
        }
    }

    /// Checks that a question can be answered.
    pub(crate) fn check(&self, question: &InputRequest) -> Result<CheckedQuestion, String> {
        let (name, text) = (&self.tool.name, shorten(&question.text));
        let bytes = Value::Object(question.schema.clone()).to_string().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!(
                "`{name}` asks {text:?} with a schema of {bytes} bytes. The limit is {MAX_SCHEMA_BYTES}."
            ));
        }
        if !question.schema.values().all(is_shallow) {
            return Err(format!(
                "`{name}` asks {text:?} with a schema that is nested more than 100 levels deep."
            ));
        }
        let schema = Schema::compile(&question.schema)
            .map_err(|error| format!("`{name}` asks {text:?} with an invalid schema: {error}"))?;
        let mut checked = CheckedQuestion {
            question: question.clone(),
            schema,
        };
        let fault = question
            .default
            .as_ref()
            .and_then(|default| checked.check_answer(default).err());
        if let Some(fault) = fault {
            checked.question.default = None;
            self.line.notice(format!(
                "the default for {text:?}, asked by `{name}`, is invalid: {fault}"
            ));
        }
        Ok(checked)
    }

    fn fixed_answer(&self, checked: &CheckedQuestion, answer: &Value) -> Result<Value, String> {
        let fits = checked.check_answer(answer);
        fits.map(|()| answer.clone()).map_err(|faults| {
            let text = shorten(&checked.question.text);
            format!(
                "`{}` asks {text:?}, but the answer in {} is invalid: {faults}",
                self.tool.name,
                self.setting(&checked.question.id)
            )
        })
    }

    /// Returns the answer that the user gave for the rest of the turn.
    fn earlier_answer(&self, checked: &CheckedQuestion) -> Option<Value> {
        let key = (self.tool.name.clone(), checked.question.id.clone());
        let answer = self.toolbox.decisions().answers.get(&key).cloned();
        answer.filter(|answer| checked.check_answer(answer).is_ok())
    }

    /// Asks the user until the answer fits.
    fn ask(&self, checked: &CheckedQuestion, context: Vec<ContentBlock>) -> Result<Value, String> {
        let question = &checked.question;
        let name = &self.tool.name;
        let _asking = self.line.wait_to_prompt(PromptKind::Question);
        if let Some(answer) = self.earlier_answer(checked) {
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
                    let text = shorten(&question.text);
                    return Err(format!(
                        "The user did not answer {text:?}, asked by `{name}`."
                    ));
                }
                Some(Reply::Interrupted) => return Err(INTERRUPTED.to_owned()),
                None if self.line.is_cancelled() => {
                    return Err(INTERRUPTED.to_owned());
                }
                None => return Err(self.report_no_terminal(question)),
            };
            match checked.check_answer(&answer) {
                Ok(()) => {
                    self.keep(question, &answer, "user");
                    if is_for_turn {
                        let key = (name.clone(), question.id.clone());
                        self.toolbox.decisions().answers.insert(key, answer.clone());
                    }
                    return Ok(answer);
                }
                Err(faults) => asked.fault = Some(faults),
            }
        }
    }

    fn infer(
        &self,
        checked: &CheckedQuestion,
        context: Vec<ContentBlock>,
    ) -> Result<Value, String> {
        let question = &checked.question;
        let inquiry = Inquiry {
            call: self.call.clone(),
            context,
            input: question.clone(),
        };
        let answer = self
            .line
            .infer(inquiry)
            .and_then(|answer| checked.check_answer(&answer).map(|()| answer));
        match answer {
            Ok(answer) => {
                self.keep(question, &answer, "assistant");
                Ok(answer)
            }
            Err(_) if self.line.is_cancelled() => Err(INTERRUPTED.to_owned()),
            Err(reason) => {
                self.use_default(question, &format!("the model gave no answer: {reason}"))
            }
        }
    }

    /// Says that there is no terminal to ask the user on. A default is not the user's answer: they
    /// might never give it.
    fn report_no_terminal(&self, question: &InputRequest) -> String {
        let (name, text, advice) = (
            &self.tool.name,
            shorten(&question.text),
            self.setting(&question.id),
        );
        let reason = "there is no terminal to ask the user on";
        self.line.notice(format!(
            "`{name}` asks {text:?}, but {reason}; set the answer with {advice}"
        ));
        let default = match &question.default {
            Some(default) => format!(
                " Its default, {}, was not used.",
                shorten(&default.to_string())
            ),
            None => String::new(),
        };
        format!(
            "`{name}` asks {text:?}, but {reason}, so the question has no answer.{default} The user can set the answer with {advice}."
        )
    }

    /// Uses the default if the model gives no answer.
    fn use_default(&self, question: &InputRequest, reason: &str) -> Result<Value, String> {
        let (name, text) = (&self.tool.name, shorten(&question.text));
        if let Some(default) = &question.default {
            self.line.notice(format!(
                "`{name}` asks {text:?}; {reason}, so jp uses the default: {default}"
            ));
            self.keep(question, default, "default");
            return Ok(default.clone());
        }
        let advice = self.setting(&question.id);
        self.line.notice(format!(
            "`{name}` asks {text:?}, but {reason}; set the answer with {advice}"
        ));
        Err(format!(
            "`{name}` asks {text:?}, but {reason}. The user can set the answer with {advice}."
        ))
    }

    /// Returns the configuration key for the answer to a question.
    fn setting(&self, id: &str) -> String {
        format!(
            "conversation.tools.{}.questions.{}.answer",
            self.tool.name,
            shorten(id)
        )
    }

    /// Records a question and its answer. `target` names who answered.
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

impl CheckedQuestion {
    /// Checks an answer against the bounds and the schema.
    pub(crate) fn check_answer(&self, answer: &Value) -> Result<(), String> {
        let bytes = answer.to_string().len();
        if bytes > MAX_ANSWER_BYTES {
            return Err(format!(
                "it has {bytes} bytes; the limit is {MAX_ANSWER_BYTES}"
            ));
        }
        if !is_shallow(answer) {
            return Err("it is nested more than 100 levels deep".to_owned());
        }
        self.schema.check_value(answer)
    }
}

/// Returns the blocks that are shown with a question.
fn context_blocks(blocks: &[ContentBlock]) -> Vec<ContentBlock> {
    blocks
        .iter()
        .filter(|block| !matches!(block, ContentBlock::Question { .. }))
        .cloned()
        .collect()
}

/// Shortens a tool's text, which may have any length.
fn shorten(text: &str) -> String {
    excerpt::beginning(text, MAX_SHOWN)
}

#[cfg(test)]
mod tests;
