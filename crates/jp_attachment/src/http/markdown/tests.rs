use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

const BUDGET: Duration = Duration::from_secs(60);

fn markdown(html: &str) -> String {
    match convert(html, BUDGET) {
        Conversion::Done { markdown, .. } => markdown,
        Conversion::GivenUp => panic!("{html:?}"),
    }
}

#[test]
fn elements_have_their_markdown() {
    let table = [
        ("<h1>A</h1><h3>B</h3>text", "# A\n\n### B\n\ntext"),
        ("<h2>a<br>b</h2>", "## a b"),
        ("<p>One\n  two<p>three", "One two\n\nthree"),
        ("a<br>b<br><br>c", "a\nb\n\nc"),
        ("a <b> bold </b> b", "a **bold** b"),
        ("a<b>b<i>c</b>d</i>e", "a**b*c***de"),
        ("<b></b><a href=x></a>x", "x"),
        ("<b>a<b>b</b>c</b>", "**abc**"),
        ("<b><p>a</p><p>b</p></b>", "**a**\n\n**b**"),
        ("<a href='/x y'>one <em>two</em></a>", "[one *two*](/x%20y)"),
        ("<a href='x'><h3>Title</h3></a>", "### [Title](x)"),
        ("<a href='#x'>a</a> <a href='javascript:x'>b</a>", "a b"),
        (
            "<img alt='A dog' src=d.png><img src=e.png>",
            "![A dog](d.png)",
        ),
        (
            "<ul><li>a<li>b<ol start=3><li>c<li>d</ol><li>e</ul>f",
            "- a\n- b\n  3. c\n  4. d\n- e\n\nf",
        ),
        ("<ul><li><p>a</p><p>b</p></li></ul>", "- a\n\n  b"),
        ("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"),
        ("x<blockquote>a</blockquote>", "x\n\n> a"),
        ("<pre>\n  a\n\n   b </pre>", "```\n  a\n\n   b\n```"),
        (
            "<pre><code class='x language-rust'>a &lt;b> ``` c</code></pre>",
            "````rust\na <b> ``` c\n````",
        ),
        ("<li><pre>a\nb</pre>c", "- ```\n  a\n  b\n  ```\n\n  c"),
        (
            "use <code>a `b`  c</code> and <code>d</code>.",
            "use ``a `b` c`` and `d`.",
        ),
        ("<p><code>a<p>b", "`a`\n\nb"),
        ("<hr>a<hr>", "---\n\na\n\n---"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n: b\n\nc\n: d"),
        (
            "<table><thead><tr><th>A<th>B</thead><tr><td>1|2<td><p>x</p><p>y</p></table>z",
            "| A | B |\n| --- | --- |\n| 1\\|2 | x y |\n\nz",
        ),
        (
            "<table><tr><td><table><tr><td>a<td>b</table></td><td>c</td></table>",
            "| a b | c |\n| --- | --- |",
        ),
        ("<table></table>", ""),
        (
            "1. a * b_c _d_ `e` &lt;f> g < h \\",
            "1\\. a \\* b_c \\_d\\_ \\`e\\` \\<f> g < h \\\\",
        ),
        (
            "<p># a<p>- b<p>> c<p>---",
            "\\# a\n\n\\- b\n\n\\> c\n\n\\---",
        ),
        (
            "<script>a<b></script><style>p{}</style>x<!-- c --><svg><title>t</title></svg><svg/>y",
            "xy",
        ),
        ("<nav>a<nav>b</nav>c</nav>d", "d"),
        ("<script>document.write('</scr'+'ipt>')</script>x", "x"),
        ("caf&eacute; &amp;amp; &#x1F980;", "café &amp; 🦀"),
        ("<p>a</p", "a"),
        ("", ""),
    ];
    for (html, expected) in table {
        assert_eq!(markdown(html), expected, "{html:?}");
    }
}

#[test]
fn title_is_the_first() {
    let html =
        "<head><title>\n A &amp; <b> </title></head><svg><title>x</title></svg><title>y</title>z";
    let Conversion::Done { title, markdown } = convert(html, BUDGET) else {
        panic!()
    };
    assert_eq!((title.as_deref(), &*markdown), (Some("A & <b>"), "z"));
    let long = format!("<title>\u{1b}[31m{}</title>", "é".repeat(300));
    let Conversion::Done { title, .. } = convert(&long, BUDGET) else {
        panic!()
    };
    assert_eq!(title.unwrap(), format!("[31m{}…", "é".repeat(196)));
}

/// What makes parsers overflow the stack, or take time that grows with the square.
#[test]
fn hostile_page_takes_linear_time() {
    let count = 20_000;
    for open in [
        "<div>",
        "<b>",
        "<ul><li>",
        "<blockquote>",
        "<table><tr><td>",
        "<a href=x>",
        "<p><b>",
        "<svg>",
        "<pre>",
        "<code>",
        "<nav>",
        "<!--",
        "<![CDATA[",
        "&",
        "<",
        "</",
        "<h1>",
        "<em><p>x",
        "<font size=1>",
        "<ol start=18446744073709551615><li>x",
        "<tr><td>x",
        "<td>",
        "</td>",
        "</ul></li>",
        "<title>",
        "<textarea>",
    ] {
        let html = open.repeat(count) + "end";
        if let Conversion::Done { markdown, .. } = convert(&html, BUDGET) {
            assert!(
                markdown.len() <= 2 * html.len() + 10 * MIN_ROOM,
                "{open}: {}",
                markdown.len()
            );
        }
    }
}

/// The clock is read between tokens only, so one token must not take long. If each attribute was
/// compared with all others, this test would take hours.
#[test]
fn tag_with_many_attributes_takes_linear_time() {
    let mut html = String::from("<p ");
    for number in 0..1_000_000 {
        write!(html, "a{number} ").unwrap();
    }
    html.push_str(">x");
    assert_eq!(markdown(&html), "x");
}

#[test]
fn page_with_an_open_element_is_given_up() {
    for html in [
        "a<nav>b<p>c",
        "a<script>b",
        "a<textarea>b</nav>",
        "a<title>b",
        "a<svg><svg></svg>b",
    ] {
        assert_eq!(convert(html, BUDGET), Conversion::GivenUp, "{html}");
    }
    assert_eq!(markdown("a<svg><svg/></svg>b"), "ab");
}

#[test]
fn page_that_grows_is_given_up() {
    let html = "<ol start=18446744073709551615><li>x".repeat(20_000);
    assert_eq!(convert(&html, BUDGET), Conversion::GivenUp);
}

proptest! {
    #[test]
    fn conversion_never_panics(parts in proptest::collection::vec(
        "</?(b|i|a|ul|ol|li|p|pre|code|table|tr|td|blockquote|h1|nav|title|br|hr|svg|dd)( href=x)?>|[a-z*|` \n]{1,4}|[é&<]", 0..40,
    )) {
        let html = parts.concat();
        let Conversion::Done { markdown, .. } = convert(&html, BUDGET) else { return Ok(()) };
        prop_assert!(!markdown.ends_with(char::is_whitespace) || markdown.is_empty());
    }
}
