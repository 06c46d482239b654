use std::{cell::RefCell, thread};

use tokio::sync::mpsc::UnboundedReceiver;

use testing::assert_starts;

use super::*;
use crate::{Command, Files, Source, Surroundings, line::Wish};

/// What the other end of the line saw, a line each.
type Seen = Vec<String>;

fn tool(questions: Vec<(&str, Answerer)>) -> Tool {
    let questions = questions
        .into_iter()
        .map(|(id, answerer)| (id.to_owned(), answerer))
        .collect();
    let command = Command {
        words: vec!["true".to_owned()],
    };
    Tool {
        questions,
        ..Tool::new("merge", Map::new(), Source::Local(command))
    }
}

fn asks(id: &str, schema: Value) -> ContentBlock {
    ContentBlock::question(question(id, schema))
}

fn question(id: &str, schema: Value) -> InputRequest {
    InputRequest::new(id, format!("{id}?"), schema.as_object().unwrap().clone())
}

fn texts(blocks: &[ContentBlock]) -> String {
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text { text, .. } => text.clone(),
        other => format!("{other:?}"),
    };
    blocks.iter().map(text).collect::<Vec<_>>().join("|")
}

/// Runs a tool that does `act`; what the user is asked is answered by `user`, and the model by
/// `model`.
fn course(
    tool: &Tool,
    act: impl FnMut(&Map<String, Value>) -> Vec<ContentBlock> + Send,
    user: impl FnMut(&Question) -> Option<Reply>,
    model: impl FnMut(&Inquiry) -> Result<Value, String>,
) -> (String, Seen) {
    let root = tempfile::tempdir().unwrap();
    let toolbox = Toolbox::new(
        Vec::new(),
        Surroundings::default(),
        Files::open(root.path(), &[]).unwrap(),
    );
    let call = ToolCallRequest {
        id: "1".to_owned(),
        name: "merge".to_owned(),
        arguments: Map::new(),
        metadata: Map::new(),
    };
    let (line, wished) = Line::new(&[]);
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            let (line, mut act) = (line, act);
            let mut act: Act<'_> = Box::new(move |answers, _| ToolResponse::new(act(answers)));
            run_with_answers(&call, tool, &toolbox, &line, &mut act)
        });
        let seen = answer_wishes(wished, user, model);
        let response = run.join().unwrap();
        (
            format!(
                "{}{}",
                if response.is_error { "error: " } else { "" },
                texts(&response.content)
            ),
            seen,
        )
    })
}

fn answer_wishes(
    mut wished: UnboundedReceiver<Wish>,
    mut user: impl FnMut(&Question) -> Option<Reply>,
    mut model: impl FnMut(&Inquiry) -> Result<Value, String>,
) -> Seen {
    let mut seen = Vec::new();
    while let Some(wish) = wished.blocking_recv() {
        match wish {
            Wish::Notice(notice) => seen.push(format!("notice: {notice}")),
            Wish::Ask(question, reply) => {
                let Question {
                    context,
                    input,
                    fault,
                    ..
                } = &question;
                let default = input.default.as_ref().map(Value::to_string);
                seen.push(format!(
                    "ask {} [{}] {default:?} {fault:?}",
                    input.id,
                    texts(context)
                ));
                if let Some(said) = user(&question) {
                    _ = reply.send(said);
                }
            }
            Wish::Infer(inquiry, reply) => {
                seen.push(format!(
                    "infer {} [{}]",
                    inquiry.input.id,
                    texts(&inquiry.context)
                ));
                _ = reply.send(model(&inquiry));
            }
            Wish::Show(tool, blocks) => seen.push(format!("show of {tool} [{}]", texts(&blocks))),
            Wish::Keep(request, response) => {
                seen.push(format!(
                    "keep {} {} {}",
                    request.id, request.source["target"], response.answer
                ));
            }
            _ => seen.push("something else".to_owned()),
        }
    }
    seen
}

fn nobody(_: &Question) -> Option<Reply> {
    None
}

fn no_model(_: &Inquiry) -> Result<Value, String> {
    Err("a tool was called".to_owned())
}

fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// Asks until it has an answer to each of the questions.
fn until_answered(
    blocks: Vec<ContentBlock>,
) -> impl FnMut(&Map<String, Value>) -> Vec<ContentBlock> {
    move |answers| {
        let is_open = |block: &ContentBlock| matches!(block, ContentBlock::Question { question } if !answers.contains_key(&question.id));
        if blocks.iter().any(is_open) {
            return blocks.clone();
        }
        vec![ContentBlock::text(
            Value::Object(answers.clone()).to_string(),
        )]
    }
}

#[test]
fn questions_are_asked_in_order_with_their_context() {
    let text = ContentBlock::text;
    let blocks = vec![
        text("a"),
        asks("one", boolean()),
        text("b"),
        asks("two", boolean()),
        asks("three", boolean()),
        text("c"),
    ];
    let tool = tool(vec![("three", Answerer::Assistant)]);
    let user = |_: &Question| Some(Reply::Once(json!(true)));
    let (result, seen) = course(&tool, until_answered(blocks), user, |_| Ok(json!(false)));
    assert_eq!(result, r#"{"one":true,"two":true,"three":false}"#);
    insta::assert_snapshot!(seen.join("\n"), @r#"
    ask one [a] None None
    keep 1.one "user" true
    ask two [b] None None
    keep 1.two "user" true
    infer three [a|b]
    keep 1.three "assistant" false
    show of merge [c]
    "#);
}

#[test]
fn invalid_default_is_ignored_with_a_notice() {
    let question = ContentBlock::question(question("one", boolean()).with_default("perhaps"));
    let user = |_: &Question| Some(Reply::Once(json!(true)));
    let (_, seen) = course(
        &tool(vec![]),
        until_answered(vec![question.clone()]),
        user,
        no_model,
    );
    insta::assert_snapshot!(seen.join("\n"), @r#"
    notice: the default for "one?", asked by `merge`, is invalid: at its top: want boolean, but got string
    ask one [] None None
    keep 1.one "user" true
    "#);
    let (result, _) = course(
        &tool(vec![]),
        until_answered(vec![question]),
        nobody,
        no_model,
    );
    assert_starts(
        &result,
        "error: `merge` asks \"one?\", but there is no terminal",
    );
}

#[test]
fn answer_that_does_not_fit_is_asked_for_again() {
    let replies = RefCell::new(vec![json!(true), json!("yes")]);
    let user = |_: &Question| Some(Reply::Once(replies.borrow_mut().pop().unwrap()));
    let (result, seen) = course(
        &tool(vec![]),
        until_answered(vec![asks("one", boolean())]),
        user,
        no_model,
    );
    assert_eq!(result, r#"{"one":true}"#);
    assert_eq!(
        seen[1],
        r#"ask one [] None Some("at its top: want boolean, but got string")"#
    );

    let large = "x".repeat(MAX_ANSWER_BYTES);
    let replies = RefCell::new(vec![Reply::Declined, Reply::Once(json!(large))]);
    let user = |_: &Question| replies.borrow_mut().pop();
    let (result, seen) = course(
        &tool(vec![]),
        until_answered(vec![asks("one", json!({}))]),
        user,
        no_model,
    );
    assert!(
        seen[1].contains("it has 1000002 bytes; the limit is 1000000"),
        "{seen:?}"
    );
    assert_eq!(
        result,
        "error: The user did not answer \"one?\", asked by `merge`."
    );
}

#[test]
fn default_is_not_used_without_a_terminal() {
    let question = || ContentBlock::question(question("one", boolean()).with_default(true));
    let (result, seen) = course(
        &tool(vec![]),
        until_answered(vec![question()]),
        nobody,
        no_model,
    );
    insta::assert_snapshot!(result, @r#"error: `merge` asks "one?", but there is no terminal to ask the user on, so the question has no answer. Its default, true, was not used. The user can set the answer with conversation.tools.merge.questions.one.answer."#);
    insta::assert_snapshot!(seen.join("\n"), @r#"
    ask one [] Some("true") None
    notice: `merge` asks "one?", but there is no terminal to ask the user on; set the answer with conversation.tools.merge.questions.one.answer
    "#);
}

#[test]
fn default_is_used_if_the_model_gives_no_answer() {
    let question = || ContentBlock::question(question("one", boolean()).with_default(true));
    let tool = tool(vec![("one", Answerer::Assistant)]);
    let (result, seen) = course(&tool, until_answered(vec![question()]), nobody, no_model);
    assert_eq!(result, r#"{"one":true}"#);
    insta::assert_snapshot!(seen.join("\n"), @r#"
    infer one []
    notice: `merge` asks "one?"; the model gave no answer: a tool was called, so jp uses the default: true
    keep 1.one "default" true
    "#);
}

#[test]
fn question_without_an_answer_is_an_error_that_names_the_setting() {
    let tool = tool(vec![("one", Answerer::Assistant)]);
    let (result, _) = course(
        &tool,
        until_answered(vec![asks("one", boolean())]),
        nobody,
        no_model,
    );
    insta::assert_snapshot!(result, @r#"error: `merge` asks "one?", but the model gave no answer: a tool was called. The user can set the answer with conversation.tools.merge.questions.one.answer."#);
}

#[test]
fn valid_configured_answer_is_used_without_a_prompt() {
    let fixed = |answer: Value| tool(vec![("one", Answerer::Fixed(answer))]);
    let (result, seen) = course(
        &fixed(json!(true)),
        until_answered(vec![asks("one", boolean())]),
        nobody,
        no_model,
    );
    assert_eq!((result.as_str(), seen.len()), (r#"{"one":true}"#, 0));
    let (result, _) = course(
        &fixed(json!("yes")),
        until_answered(vec![asks("one", boolean())]),
        nobody,
        no_model,
    );
    insta::assert_snapshot!(result, @r#"error: `merge` asks "one?", but the answer in conversation.tools.merge.questions.one.answer is invalid: at its top: want boolean, but got string"#);
}

#[test]
fn answer_for_the_turn_is_given_again_unasked() {
    let runs = RefCell::new(0);
    let act = move |_: &Map<String, Value>| {
        *runs.borrow_mut() += 1;
        if *runs.borrow() < 3 {
            vec![asks("one", boolean())]
        } else {
            vec![ContentBlock::text("done")]
        }
    };
    let user = |_: &Question| Some(Reply::ForTurn(json!(true)));
    let (result, seen) = course(&tool(vec![]), act, user, no_model);
    assert_eq!(result, "done");
    assert_eq!(seen, ["ask one [] None None", "keep 1.one \"user\" true"]);
}

#[test]
fn question_that_is_asked_again_is_kept_under_an_id_of_its_own() {
    let runs = RefCell::new(0);
    let act = move |_: &Map<String, Value>| {
        *runs.borrow_mut() += 1;
        if *runs.borrow() < 4 {
            vec![asks("one", boolean())]
        } else {
            vec![ContentBlock::text("done")]
        }
    };
    let user = |_: &Question| Some(Reply::Once(json!(true)));
    let (_, seen) = course(&tool(vec![]), act, user, no_model);
    let kept: Vec<_> = seen
        .iter()
        .filter(|line| line.starts_with("keep"))
        .collect();
    let expected = ["1.one", "1.one.2", "1.one.3"].map(|id| format!("keep {id} \"user\" true"));
    assert_eq!(kept, expected.iter().collect::<Vec<_>>());
}

#[test]
fn questions_have_an_end() {
    let user = |_: &Question| Some(Reply::Once(json!(true)));
    let failed = |act: &mut (dyn FnMut() -> Vec<ContentBlock> + Send)| {
        course(&tool(vec![]), |_| act(), user, no_model).0
    };
    insta::assert_snapshot!(failed(&mut || vec![asks("one", boolean())]), @r#"error: `merge` asked "one?" 3 times in one call and got an answer each time."#);
    let mut number = 0;
    insta::assert_snapshot!(failed(&mut || { number += 1; vec![asks(&number.to_string(), boolean())] }), @"error: `merge` ran 30 times and still asks questions.");
    insta::assert_snapshot!(failed(&mut || (0..51).map(|id| asks(&id.to_string(), boolean())).collect()), @"error: `merge` asks 51 questions at once. The limit is 50.");
    insta::assert_snapshot!(failed(&mut || vec![asks("one", boolean()), asks("one", boolean())]), @r#"error: `merge` asks two questions with the same id, "one", at once."#);
    insta::assert_snapshot!(failed(&mut || vec![asks("one", json!({"description": "x".repeat(MAX_SCHEMA_BYTES)}))]), @r#"error: `merge` asks "one?" with a schema of 128018 bytes. The limit is 128000."#);
    insta::assert_snapshot!(failed(&mut || vec![asks("one", json!({"type": "text"}))]), @r#"error: `merge` asks "one?" with an invalid schema: at /type: value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'; at /type: want array, but got string"#);
}

#[test]
fn question_nested_too_deeply_is_refused() {
    let deep = (0..120).fold(json!([]), |inner, _| json!([inner]));
    let blocks = |schema| until_answered(vec![asks("one", schema)]);
    let answer = deep.clone();
    let user = move |question: &Question| {
        Some(if question.fault.is_none() {
            Reply::Once(answer.clone())
        } else {
            Reply::Declined
        })
    };
    let (result, seen) = course(&tool(vec![]), blocks(json!({})), &user, no_model);
    assert_eq!(
        result,
        r#"error: The user did not answer "one?", asked by `merge`."#
    );
    let fault = r#"ask one [] None Some("it is nested more than 100 levels deep")"#;
    assert_eq!(seen, ["ask one [] None None", fault]);
    let (result, seen) = course(
        &tool(vec![]),
        blocks(json!({"default": deep})),
        &user,
        no_model,
    );
    assert_eq!(
        result,
        r#"error: `merge` asks "one?" with a schema that is nested more than 100 levels deep."#
    );
    assert_eq!(seen, [""; 0]);
}
