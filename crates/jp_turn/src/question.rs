//! Runs a tool until it has no more questions.

use std::collections::HashMap;

use jp_conversation::{InquiryRequest, InquiryResponse, ToolCallRequest};
use jp_tool::{ContentBlock, InputRequest, ToolResponse};
use serde_json::{Map, Value, json};

use crate::{
    Answerer, Question, Reply, Schema, Tool, Toolbox,
    call::Act,
    calls::{Inquiry, Line},
};

/// How often a tool may run for one call.
const MAX_RUNS: usize = 30;
/// How often one question may be asked in one call.
const MAX_ASKED: usize = 3;

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
            Err(reason) => return ToolResponse::error([ContentBlock::text(reason)]),
        }
    }
    let reason = format!("`{}` was run {MAX_RUNS} times and still asks questions.", tool.name);
    ToolResponse::error([ContentBlock::text(reason)])
}

/// What a question is asked for.
pub(crate) struct Asking<'a> {
    call: &'a ToolCallRequest,
    tool: &'a Tool,
    toolbox: &'a Toolbox,
    line: &'a Line,
    /// How often each question was asked.
    asked: HashMap<String, usize>,
}

impl<'a> Asking<'a> {
    pub(crate) fn new(
        call: &'a ToolCallRequest,
        tool: &'a Tool,
        toolbox: &'a Toolbox,
        line: &'a Line,
    ) -> Self {
        Self { call, tool, toolbox, line, asked: HashMap::new() }
    }

    /// Answers the questions of a response, in order; returns whether there were any.
    fn answer(&mut self, response: &ToolResponse, answers: &mut Map<String, Value>) -> Result<bool, String> {
        let mut has_asked = false;
        for (index, block) in response.content.iter().enumerate() {
            let ContentBlock::Question { question } = block else { continue };
            has_asked = true;
            let times = self.asked.entry(question.id.clone()).or_default();
            *times += 1;
            if *times > MAX_ASKED {
                return Err(format!(
                    "`{}` asked {:?} {MAX_ASKED} times in one call and was given an answer each time.",
                    self.tool.name, question.text
                ));
            }
            let answer = self.answer_to(question, &response.content[..index])?;
            answers.insert(question.id.clone(), answer);
        }
        Ok(has_asked)
    }

    /// Answers one question, as the configuration says or by asking; the error is for the model.
    pub(crate) fn answer_to(
        &self,
        question: &InputRequest,
        before: &[ContentBlock],
    ) -> Result<Value, String> {
        let name = &self.tool.name;
        let schema = Schema::compile(&question.schema).map_err(|error| {
            format!("`{name}` asks {:?} with a schema that is none: {error}", question.text)
        })?;
        let is_shown = |block: &&ContentBlock| !matches!(block, ContentBlock::Question { .. });
        let context: Vec<_> = before.iter().filter(is_shown).cloned().collect();
        let key = (name.clone(), question.id.clone());
        if let Some(answer) = self.toolbox.said().answers.get(&key)
            && schema.check_value(answer).is_ok()
        {
            return Ok(answer.clone());
        }
        match self.tool.questions.get(&question.id) {
            Some(Answerer::Fixed(answer)) => {
                let fits = schema.check_value(answer);
                fits.map(|()| answer.clone()).map_err(|faults| {
                    format!(
                        "The answer to {:?} in the configuration, {answer}, does not fit: {faults}",
                        question.text
                    )
                })
            }
            Some(Answerer::Assistant) => self.infer(question, context, &schema),
            Some(Answerer::User) | None => self.ask(question, context, &schema),
        }
    }

    /// Asks the person until the answer fits.
    fn ask(
        &self,
        question: &InputRequest,
        context: Vec<ContentBlock>,
        schema: &Schema,
    ) -> Result<Value, String> {
        let (name, text) = (&self.tool.name, &question.text);
        let mut asked = Question { tool: name.clone(), context, input: question.clone(), fault: None };
        loop {
            let (answer, is_for_turn) = match self.line.ask(asked.clone()) {
                Some(Reply::Once(answer)) => (answer, false),
                Some(Reply::ForTurn(answer)) => (answer, true),
                Some(Reply::Declined) => {
                    return Err(format!("The person gave no answer to {text:?}, which `{name}` asks."));
                }
                None if self.line.is_cancelled() => return Err("The call was interrupted.".to_owned()),
                None => {
                    return self.unanswered(question, schema, "there is no terminal to ask the person on");
                }
            };
            match schema.check_value(&answer) {
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

    fn infer(
        &self,
        question: &InputRequest,
        context: Vec<ContentBlock>,
        schema: &Schema,
    ) -> Result<Value, String> {
        let inquiry = Inquiry { call: self.call.clone(), context, input: question.clone() };
        let fitting = |answer: Value| schema.check_value(&answer).map(|()| answer);
        match self.line.infer(inquiry).and_then(fitting) {
            Ok(answer) => {
                self.keep(question, &answer, "assistant");
                Ok(answer)
            }
            Err(_) if self.line.is_cancelled() => Err("The call was interrupted.".to_owned()),
            Err(reason) => self.unanswered(question, schema, &format!("the model gave no answer: {reason}")),
        }
    }

    /// Takes the default where there is no answer.
    fn unanswered(&self, question: &InputRequest, schema: &Schema, reason: &str) -> Result<Value, String> {
        let (name, text) = (&self.tool.name, &question.text);
        let default = question.default.as_ref().filter(|default| schema.check_value(default).is_ok());
        if let Some(default) = default {
            self.line.notice(format!("`{name}` asks {text:?}; {reason}, so its default is taken: {default}"));
            self.keep(question, default, "default");
            return Ok(default.clone());
        }
        let advice = format!("conversation.tools.{name}.questions.{}.answer", question.id);
        self.line.notice(format!("`{name}` asks {text:?}, and {reason}; {advice} can hold the answer"));
        Err(format!("`{name}` asks {text:?}, and {reason}. The answer can be configured at {advice}."))
    }

    fn keep(&self, question: &InputRequest, answer: &Value, target: &str) {
        let id = format!("{}.{}", self.call.id, question.id);
        let source =
            json!({"source": "tool", "name": self.tool.name, "call": self.call.id, "target": target});
        let request = InquiryRequest { id: id.clone(), source, question: question.clone() };
        self.line.keep(request, InquiryResponse { id, answer: answer.clone() });
    }
}
