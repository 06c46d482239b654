use proptest::prelude::*;

use super::*;

/// Puts a token together, so that no scanner takes this file for one.
fn token(start: &str, rest: &str) -> String {
    format!("{start}{rest}")
}

/// Signs without order, as many as asked for.
fn random(length: usize) -> &'static str {
    const SIGNS: &str = "\
        q7Zr2WvK9xLmT4bNcH8sYd3FgJp6RwUe5XtQaM1oVzBk0CiGnDySfPhEuIjOlA7w\
        R3kXq8Nz5TbVm2YcLd9HsWf4JgPx6QeUr1ZtKaB7oMvCi0GnDwSyFpEhIuOjAl3x\
        T9mWb4Zk7RqNc2XvLd8YsHf5JgPx3QeUt6KrAo1BVzMi0CnGyDwSpFhEuIjOlT2q\
        Zc8XwRk4NbVm9TqLd2YsHf7JgPx5QeUr3KtAo6BVzMi1CnGyDwSpFhEuIjOlW0mK";
    &SIGNS[..length]
}

/// Hexadecimal digits without order.
fn hex(length: usize) -> &'static str {
    const DIGITS: &str = "9f3c1e7a0b5d8246c2e9f1a7304b6d58e1c90a7f3b52d486a9e07c1f4d8b3625";
    &DIGITS[..length]
}

fn kinds(text: &str) -> Vec<&'static str> {
    scan(text).into_iter().map(|found| found.kind).collect()
}

fn private_key(label: &str, line_break: &str) -> String {
    let begin = token("-----BEGIN", &format!(" {label}-----"));
    format!("{begin}{line_break}MIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu")
}

#[test]
fn well_known_secrets_are_found() {
    let table = [
        ("an AWS access key", token("AKIA", "Q7ZR2WVKXLMT4BNC")),
        ("a GitHub token", token("ghp_", random(36))),
        ("a GitHub token", token("gho_", random(36))),
        (
            "a GitHub token",
            token("github_pat_", &format!("{}_{}", random(22), random(59))),
        ),
        ("a GitLab token", token("glpat-", random(20))),
        (
            "a Slack token",
            token("xoxb-", &format!("73910846{}-{}", 25, random(24))),
        ),
        (
            "a Slack webhook",
            token(
                "https://hooks.slack.com/services/",
                &format!("T0A{0}/B0B{0}/{1}", "7Z2W9K3", random(24)),
            ),
        ),
        ("a Stripe key", token("sk_live_", random(24))),
        (
            "an Anthropic API key",
            token("sk-ant-", &format!("api03-{}", random(93))),
        ),
        ("an OpenRouter API key", token("sk-or-v1-", hex(64))),
        ("an OpenAI API key", token("sk-", random(48))),
        ("an OpenAI API key", token("sk-proj-", random(120))),
        ("a Google API key", token("AIza", random(35))),
        ("a Groq API key", token("gsk_", random(52))),
        ("a Hugging Face token", token("hf_", random(34))),
        ("an npm token", token("npm_", random(36))),
        (
            "a PyPI token",
            token("pypi-", &format!("AgEIcHlwaS5vcmc{}", random(120))),
        ),
        (
            "a SendGrid key",
            token("SG.", &format!("{}.{}", random(22), random(43))),
        ),
        ("a Twilio API key", token("SK", hex(32))),
        ("a DigitalOcean token", token("dop_v1_", hex(64))),
        (
            "a JSON web token",
            token(
                "eyJ",
                &format!("hbGciOiJIUzI1NiJ9.eyJ{}.{}", random(40), random(43)),
            ),
        ),
        ("a private key", private_key("RSA PRIVATE KEY", "\n")),
        ("a private key", private_key("PRIVATE KEY", "\\n")),
        (
            "a private key",
            private_key("PGP PRIVATE KEY BLOCK", "\nVersion: GnuPG v2\n\n"),
        ),
        (
            "a private key",
            private_key(
                "EC PRIVATE KEY",
                "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n",
            ),
        ),
        (
            "a password in a URL",
            token("postgres://app:", &format!("{}@db.internal/x", random(12))),
        ),
        (
            "a password in a URL",
            token("redis://:", &format!("{}@10.0.0.1:6379", random(12))),
        ),
        (
            "a password or token",
            token("password = \"", &format!("{}\"", "kX9!vq2Lp")),
        ),
        (
            "a password or token",
            token("\"password\": \"", &format!("{}\"", "kX9!vq2Lp")),
        ),
        (
            "a password or token",
            token("DB_PASSWORD='", &format!("{}'", "h7Gw2kLq9x")),
        ),
        (
            "a password or token",
            token("const API_KEY: &str = \"", &format!("{}\";", random(24))),
        ),
        (
            "a password or token",
            token("aws_secret_access_key = ", random(40)),
        ),
        (
            "a password or token",
            token("export AUTH_TOKEN=", &format!("{} # mine", hex(40))),
        ),
        (
            "a password or token",
            token("  client-secret: ", &format!("{}\r\n", random(32))),
        ),
    ];
    for (kind, secret) in table {
        for text in [
            secret.clone(),
            format!("one\n\n  {secret}\nfour"),
            format!("\"{secret}\""),
            format!("é\\n{secret} x"),
        ] {
            let found = scan(&text);
            let Some(first) = found.first() else {
                panic!("{kind} in {text:?}")
            };
            assert_eq!(first.kind, kind, "{text:?}");
            assert_eq!(
                first.line,
                if text.starts_with("one") { 3 } else { 1 },
                "{text:?}"
            );
        }
    }
}

#[test]
fn harmless_values_are_not_found() {
    let table = [
        String::new(),
        token("AKIA", "IOSFODNN7EXAMPLE"),
        token("AKIA", "AAAAAAAAAAAAAAAA"),
        token("ghp_", &"x".repeat(36)),
        token("ghp_", "1234567890abcdefghijklmnopqrstuvwxyz"),
        token("ghp_", random(20)),
        token("xghp_", random(36)),
        token("npm_", random(60)),
        token("sk-ant-", "api03-your-key-goes-here-000000000000000000"),
        token("sk-", "learn-contributors-and-everyone-else-here"),
        token("task-", random(48)),
        token("SKIP", hex(32)),
        token("SG.", "short"),
        token(
            "-----BEGIN ",
            "CERTIFICATE-----\nMIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX",
        ),
        token("-----BEGIN ", "PRIVATE KEY-----\n…\n"),
        "-----BEGIN {} PRIVATE KEY-----".to_owned(),
        "https://user:password@example.com/".to_owned(),
        "https://user:${PASSWORD}@host/".to_owned(),
        "https://user:$DB_SECRET1@host/".to_owned(),
        "postgres://postgres:postgres@localhost".to_owned(),
        "http://[::1]:8080/a@b".to_owned(),
        "https://host/path:with/colons@here".to_owned(),
        "password = \"hunter\"".to_owned(),
        "password = \"my-password-123!A\"".to_owned(),
        "password = \"${DB_PASS_9x!}\"".to_owned(),
        "password: <your password>".to_owned(),
        "password = \"{{ vault.pass_9X }}\"".to_owned(),
        "password = os.environ[\"DB_PASSWORD\"]".to_owned(),
        "token = self.tokens.next2()".to_owned(),
        "let token: Option<Token2> = None;".to_owned(),
        "token = \"identifier\"".to_owned(),
        "secret: kubernetes-dashboard-certs".to_owned(),
        "private_key: \"_EllipticCurvePrivateKey\",".to_owned(),
        "secretName = \"app-tls-certificate\"".to_owned(),
        "TOKEN_PATTERN = \"[A-Za-z0-9]{36}\"".to_owned(),
        "password = \"xxxxXXXX99!!\"".to_owned(),
        "api_key=\"/run/keys/Api1\"".to_owned(),
        "token: \"https://auth.host/Oauth2\"".to_owned(),
        "secret = \"********\"".to_owned(),
    ];
    for text in table {
        assert_eq!(kinds(&text), Vec::<&str>::new(), "{text:?}");
    }
}

#[test]
fn each_kind_is_found_once_in_the_order_of_the_text() {
    let (github, google) = (token("ghp_", random(36)), token("AIza", random(35)));
    let text = format!(
        "{github}\n\n{google} {github}\n{}\n{google}\n",
        token("gho_", random(36))
    );
    let expected = [
        Finding {
            kind: "a GitHub token",
            line: 1,
        },
        Finding {
            kind: "a Google API key",
            line: 3,
        },
    ];
    assert_eq!(scan(&text), expected);
}

#[test]
fn finding_does_not_contain_the_secret() {
    let secret = token("ghp_", random(36));
    assert!(!format!("{:?}", scan(&secret)).contains(random(6)));
}

#[test]
fn every_pattern_is_valid() {
    for (index, pattern) in PATTERNS.iter().enumerate() {
        SCANNER.regex(index);
        assert!(
            pattern.kind.starts_with("a ") || pattern.kind.starts_with("an "),
            "{}",
            pattern.kind
        );
    }
}

#[test]
fn time_is_linear_in_the_worst_cases() {
    for part in [
        "ghp_",
        "eyJ",
        "://a:",
        "password",
        "token=\"",
        "-----BEGIN ",
        "sk-",
        "AIza",
        "secret\n",
    ] {
        // A megabyte of starts. Quadratic time would take hours.
        let text = part.repeat(1_000_000 / part.len());
        assert_eq!(kinds(&text), Vec::<&str>::new(), "{part:?}");
    }
}

proptest! {
    #[test]
    fn lines_are_within_the_text(
        parts in proptest::collection::vec(
            prop_oneof![
                ".{0,12}",
                Just("\n".to_owned()),
                Just(token("ghp_", random(36))),
                Just(token("AKIA", "Q7ZR2WVKXLMT4BNC")),
                Just(token("password = \"", "kX9!vq2Lp\"")),
                Just("://é:ß@".to_owned()),
                Just("token: 'é".to_owned()),
                Just("-----BEGIN ".to_owned()),
            ],
            0..12,
        )
    ) {
        let text = parts.concat();
        let lines = text.matches('\n').count() + 1;
        let found = scan(&text);
        prop_assert!(found.iter().all(|found| (1..=lines).contains(&found.line)));
        prop_assert!(found.windows(2).all(|two| two[0].line <= two[1].line && two[0].kind != two[1].kind));
    }
}
