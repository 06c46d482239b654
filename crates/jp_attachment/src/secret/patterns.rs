/// A kind of secret with its pattern.
pub(super) struct Pattern {
    /// The name, with its article.
    pub(super) kind: &'static str,
    /// The possible starts, in any ASCII case.
    pub(super) starts: &'static [&'static str],
    /// The whole pattern from its start on. The group `secret`, or else the whole match, must not
    /// be a placeholder. Repetitions are bounded, so that a scan takes linear time. Classes are
    /// those of ASCII, so that no Unicode tables are needed.
    pub(super) regex: &'static str,
    /// The additional condition.
    pub(super) check: Check,
}

/// An additional condition for a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// It is a separate token, without a letter, digit or `_` before or after it.
    Token,
    /// None.
    Nothing,
    /// It is the password of a URL, and neither the user name nor a placeholder.
    UrlPassword,
    /// It is a value that people hardly use for anything other than a secret.
    Value,
}

const fn token(
    kind: &'static str,
    starts: &'static [&'static str],
    regex: &'static str,
) -> Pattern {
    Pattern {
        kind,
        starts,
        regex,
        check: Check::Token,
    }
}

/// The patterns, as the issuers document them. If several match at one place, the first counts.
pub(super) const PATTERNS: &[Pattern] = &[
    token(
        "an AWS access key",
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        "(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
    ),
    token(
        "a GitHub token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        "gh[pousr]_[A-Za-z0-9]{36,251}",
    ),
    token(
        "a GitHub token",
        &["github_pat_"],
        "github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    ),
    token(
        "a GitLab token",
        &[
            "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-", "glft-", "glimt-",
            "glagent-", "gloas-",
        ],
        "gl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent|oas)-[A-Za-z0-9_.-]{20,250}",
    ),
    token(
        "a Slack token",
        &[
            "xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-",
        ],
        "(?:xox[aboprs]-|xoxe[.-](?:xox[bp]-)?|xapp-)[A-Za-z0-9-]{10,250}",
    ),
    token(
        "a Slack webhook",
        &["hooks.slack.com/services/T"],
        "hooks\\.slack\\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{20,28}",
    ),
    token(
        "a Stripe key",
        &["sk_live_", "rk_live_"],
        "[sr]k_live_[A-Za-z0-9]{16,247}",
    ),
    token(
        "a Stripe webhook secret",
        &["whsec_"],
        "whsec_[A-Za-z0-9+/=]{32,100}",
    ),
    token(
        "an Anthropic API key",
        &["sk-ant-"],
        "sk-ant-[a-z]{3,8}[0-9]{2}-[A-Za-z0-9_-]{20,200}",
    ),
    token(
        "an OpenRouter API key",
        &["sk-or-v1-"],
        "sk-or-v1-[0-9a-f]{64}",
    ),
    token(
        "an OpenAI API key",
        &["sk-"],
        "sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,240}|[A-Za-z0-9]{32,64})",
    ),
    token("a Google API key", &["AIza"], "AIza[A-Za-z0-9_-]{35}"),
    token(
        "a Google OAuth secret",
        &["GOCSPX-"],
        "GOCSPX-[A-Za-z0-9_-]{28}",
    ),
    token(
        "a Google access token",
        &["ya29."],
        "ya29\\.[A-Za-z0-9_-]{30,250}",
    ),
    token("a Groq API key", &["gsk_"], "gsk_[A-Za-z0-9]{48,60}"),
    token("an xAI API key", &["xai-"], "xai-[A-Za-z0-9]{70,90}"),
    token("a Hugging Face token", &["hf_"], "hf_[A-Za-z0-9]{34,40}"),
    token("a Replicate token", &["r8_"], "r8_[A-Za-z0-9]{37}"),
    token("an npm token", &["npm_"], "npm_[A-Za-z0-9]{36}"),
    token(
        "a PyPI token",
        &["pypi-AgE"],
        "pypi-AgE[A-Za-z0-9_-]{50,250}",
    ),
    token("a crates.io token", &["cio"], "cio[A-Za-z0-9]{32}"),
    token(
        "a Docker Hub token",
        &["dckr_pat_", "dckr_oat_"],
        "dckr_[po]at_[A-Za-z0-9_-]{27,40}",
    ),
    token(
        "a SendGrid key",
        &["SG."],
        "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}",
    ),
    token("a Twilio API key", &["SK"], "SK[0-9a-f]{32}"),
    token(
        "a DigitalOcean token",
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        "do[por]_v1_[a-f0-9]{64}",
    ),
    token(
        "a Shopify token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        "shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    ),
    token(
        "a Databricks token",
        &["dapi"],
        "dapi[a-f0-9]{32}(?:-[0-9])?",
    ),
    token(
        "a Vault token",
        &["hvs.", "hvb."],
        "hv[sb]\\.[A-Za-z0-9_-]{24,250}",
    ),
    token("a Linear API key", &["lin_api_"], "lin_api_[A-Za-z0-9]{40}"),
    token("a Notion token", &["ntn_"], "ntn_[A-Za-z0-9]{40,50}"),
    token(
        "a Grafana token",
        &["glsa_", "glc_"],
        "(?:glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/=]{32,250})",
    ),
    token(
        "a Sentry token",
        &["sntrys_", "sntryu_"],
        "sntry[su]_[A-Za-z0-9+/=_]{60,250}",
    ),
    token(
        "a Postman key",
        &["PMAK-"],
        "PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    ),
    token(
        "an age key",
        &["AGE-SECRET-KEY-1"],
        "AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
    ),
    token(
        "an Azure storage key",
        &["AccountKey="],
        "AccountKey=[A-Za-z0-9+/]{86}==",
    ),
    token(
        "a JSON web token",
        &["eyJ"],
        "eyJ[A-Za-z0-9_-]{10,2000}\\.eyJ[A-Za-z0-9_-]{10,2000}\\.[A-Za-z0-9_-]{20,1000}",
    ),
    Pattern {
        kind: "a private key",
        starts: &["-----BEGIN "],
        // Between the line and the key there may be headers, or the escaped line breaks of a
        // string.
        regex: "-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----\
                (?:[\\r\\n]{1,2}[A-Za-z-]{3,20}: [^\\r\\n]{1,100}){0,4}\
                (?:\\\\[nr]|[ \\t\\r\\n\"'`+,\\\\]){1,60}\
                (?P<secret>[A-Za-z0-9+/]{24})",
        check: Check::Nothing,
    },
    Pattern {
        kind: "a password in a URL",
        starts: &["://"],
        regex: "://(?P<user>[^ \\t\\r\\n/?#@:\"'`<>]{0,100}):(?P<secret>[^ \\t\\r\\n/?#@\"'`<>]{6,200})@[A-Za-z0-9\\[]",
        check: Check::UrlPassword,
    },
    Pattern {
        kind: "a password or token",
        starts: &[
            "password",
            "passwd",
            "passphrase",
            "secret",
            "token",
            "api_key",
            "apikey",
            "api-key",
            "access_key",
            "accesskey",
            "access-key",
            "auth_key",
            "authkey",
            "private_key",
        ],
        // `KEY = "VALUE"` with any type and operator between; without quotes only up to a space.
        regex: "(?i-u:password|passwd|passphrase|secret|token|(?:api|access|auth|private)[_-]?key)\
                (?i-u:[_-]?(?:access|key|token|secret|value|base|string|[0-9]{1,2})){0,3}\
                [\"'`\\]]{0,2}[ \\t]{0,20}\
                (?::[ \\t]{0,4}&?(?:'static )?[A-Za-z]{1,20}[ \\t]{0,4}=|:=|=>|={1,3}|:)[ \\t]{0,20}\
                (?:\"(?P<double>[^\" \\t\\r\\n]{8,200})\"|'(?P<single>[^' \\t\\r\\n]{8,200})'\
                |(?P<bare>[A-Za-z0-9+/=_!@#%^&*~.-]{16,200})(?:[ \\t\\r\\n\\\\#\"'`]|\\z))",
        check: Check::Value,
    },
];
