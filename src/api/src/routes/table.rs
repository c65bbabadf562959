//! The table itself.

use super::{Access, Answer, Body, Content, ErrorForm, Form, Method, Parameter, Place, Route};
use crate::problem::Slug;

const MIB: usize = 1 << 20;

const fn json(schema: &'static str) -> Option<Body> {
    Some(Body {
        content: Content::Json(schema),
        limit: MIB,
    })
}

const fn ok(schema: &'static str, about: &'static str) -> Answer {
    Answer {
        status: 200,
        content: Content::Json(schema),
        about,
    }
}

const fn query(name: &'static str, form: Form, about: &'static str) -> Parameter {
    Parameter {
        name,
        place: Place::Query,
        form,
        required: false,
        about,
    }
}

const fn in_path(name: &'static str, form: Form, about: &'static str) -> Parameter {
    Parameter {
        name,
        place: Place::Path,
        form,
        required: true,
        about,
    }
}

const fn header(name: &'static str, form: Form, about: &'static str) -> Parameter {
    Parameter {
        name,
        place: Place::Header,
        form,
        required: false,
        about,
    }
}

/// What most routes are.
const PLAIN: Route = Route {
    method: Method::Get,
    path: "",
    id: "",
    summary: "",
    about: "",
    access: Access::Slot,
    errors: ErrorForm::Problem,
    parameters: &[],
    body: None,
    answers: &[],
    own_problems: &[],
};

/// Laya's own contract, passed through.
const PASSED: Route = Route {
    method: Method::Post,
    errors: ErrorForm::Detail,
    parameters: &[
        header(
            "x-laya-contract",
            Form::Digest,
            "Contract of the questions asked; a server with another one is not asked.",
        ),
        header(
            "x-laya-deadline-ms",
            Form::Number {
                least: 1,
                most: 60_000,
                default: Some(60_000),
            },
            "How long the caller waits, in milliseconds.",
        ),
    ],
    body: Some(Body {
        content: Content::AnyJson,
        limit: 2 * MIB,
    }),
    answers: &[
        Answer {
            status: 200,
            content: Content::AnyJson,
            about: "What the server answered, byte for byte, with its headers. `x-relay-model-version` names the version, `x-relay-contract` says whether its questions are those in force: `match` or `foreign`.",
        },
        Answer {
            status: 504,
            content: Content::Json("Detail"),
            about: "The deadline passed.",
        },
    ],
    own_problems: &[Slug::Unavailable],
    ..PLAIN
};

const MEMORY_ID: Parameter = in_path(
    "id",
    Form::Text,
    "Id of the learned task, for example `s00012`.",
);

/// Every route, in the order in which they are documented.
pub const ROUTES: &[Route] = &[
    Route {
        method: Method::Post,
        path: "/v1/route",
        id: "route",
        summary: "Decide",
        about: "Model, effort, role, tools and checks for one request. Learned tasks are asked first, then the decision model, then rules; a model or a store that is away costs a fallback or a warning, never the decision.",
        parameters: &[query(
            "explain",
            Form::Switch,
            "Adds `trace`: how the decision came about.",
        )],
        body: json("RouteRequest"),
        answers: &[ok("DecisionAnswer", "The decision record.")],
        own_problems: &[Slug::NoCandidate, Slug::Unavailable],
        ..PLAIN
    },
    Route {
        method: Method::Post,
        path: "/v1/escalate",
        id: "escalate",
        summary: "Go on after failures or a provider's error",
        about: "Exactly one of `failures` and `provider_error`. The same input gives the same answer.",
        body: json("EscalateRequest"),
        answers: &[ok("EscalateResponse", "What to do next.")],
        own_problems: &[Slug::NotFound, Slug::NoCandidate, Slug::Unavailable],
        ..PLAIN
    },
    Route {
        method: Method::Post,
        path: "/v1/outcomes",
        id: "outcomes",
        summary: "Report how an attempt ended",
        about: "Key is decision and attempt: the same body again gets the same answer; only `corrected` may change later. What is acknowledged is on disk.",
        body: json("OutcomeReport"),
        answers: &[ok(
            "OutcomeResponse",
            "What history makes of the model now.",
        )],
        own_problems: &[Slug::NotFound, Slug::Conflict, Slug::Unavailable],
        ..PLAIN
    },
    Route {
        method: Method::Post,
        path: "/v1/learn",
        id: "learn",
        summary: "Save labelled tasks",
        about: "All or nothing; errors name `exercises[i].labels.<id>`.",
        body: Some(Body {
            content: Content::Json("LearnBody"),
            limit: 2 * MIB,
        }),
        answers: &[ok("LearnAnswer", "What was saved.")],
        own_problems: &[Slug::ContractMismatch, Slug::Unavailable],
        ..PLAIN
    },
    Route {
        path: "/v1/systemone",
        id: "systemone",
        summary: "Ask the serving model",
        about: "Passed through unchanged to a server chosen by weight; one retry on another server of the same contract. Rules never stand in.",
        ..PASSED
    },
    Route {
        path: "/v1/systemone/batch",
        id: "systemone_batch",
        summary: "Ask the serving model many times at once",
        about: "As `/v1/systemone`.",
        ..PASSED
    },
    Route {
        path: "/v1/memory",
        id: "memory",
        summary: "Learned tasks",
        parameters: &[query(
            "stale",
            Form::Switch,
            "Only those that are not used, since the questions changed.",
        )],
        answers: &[ok("MemoryResponse", "Oldest first.")],
        own_problems: &[Slug::Unavailable],
        ..PLAIN
    },
    Route {
        method: Method::Delete,
        path: "/v1/memory",
        id: "memory_forget_many",
        summary: "Forget a session's tasks, or all",
        about: "Exactly one of the parameters.",
        parameters: &[
            query("session", Form::Text, "Those of this session."),
            query("all", Form::Switch, "Every learned task."),
        ],
        answers: &[ok("ForgetResponse", "What is gone.")],
        own_problems: &[Slug::Unavailable],
        ..PLAIN
    },
    Route {
        path: "/v1/memory/search",
        id: "memory_search",
        summary: "Learned tasks like a text",
        parameters: &[
            Parameter {
                required: true,
                ..query("q", Form::Text, "The text.")
            },
            query(
                "limit",
                Form::Number {
                    least: 1,
                    most: 100,
                    default: Some(20),
                },
                "How many at most.",
            ),
        ],
        answers: &[ok("MemoryResponse", "Closest first.")],
        own_problems: &[Slug::Unavailable],
        ..PLAIN
    },
    Route {
        path: "/v1/memory/{id}",
        id: "memory_task",
        summary: "One learned task",
        parameters: &[MEMORY_ID],
        answers: &[ok("MemoryTask", "The task.")],
        own_problems: &[Slug::NotFound, Slug::Unavailable],
        ..PLAIN
    },
    Route {
        method: Method::Patch,
        path: "/v1/memory/{id}",
        id: "memory_edit",
        summary: "Change a task's lesson",
        parameters: &[MEMORY_ID],
        body: json("MemoryPatch"),
        answers: &[ok("MemoryTask", "The task as it is now.")],
        own_problems: &[Slug::NotFound, Slug::Unavailable],
        ..PLAIN
    },
    Route {
        method: Method::Delete,
        path: "/v1/memory/{id}",
        id: "memory_forget",
        summary: "Forget a task",
        parameters: &[MEMORY_ID],
        answers: &[ok(
            "ForgetResponse",
            "What is gone, and which models were trained on it already.",
        )],
        own_problems: &[Slug::NotFound, Slug::Unavailable],
        ..PLAIN
    },
    Route {
        method: Method::Post,
        path: "/v1/dataset/snapshots",
        id: "snapshot_freeze",
        summary: "Freeze the rows",
        about: "What a training run or an evaluation is pinned to. No body.",
        answers: &[ok("Snapshot", "Digests to read the frozen files by.")],
        own_problems: &[Slug::Unavailable],
        ..PLAIN
    },
    Route {
        path: "/v1/dataset/snapshots/{digest}",
        id: "snapshot",
        summary: "A frozen file",
        about: "Kept for 30 days after it was last read.",
        parameters: &[in_path("digest", Form::Digest, "Its digest.")],
        answers: &[Answer {
            status: 200,
            content: Content::JsonLines,
            about: "Canonical rows, sorted by id.",
        }],
        own_problems: &[Slug::NotFound, Slug::Unavailable],
        ..PLAIN
    },
    Route {
        path: "/v1/decisions",
        id: "decisions",
        summary: "Stored decisions",
        parameters: &[
            query(
                "conversation_id",
                Form::Text,
                "Only those of this conversation.",
            ),
            query("since", Form::Time, "Only those made from then on."),
            query(
                "limit",
                Form::Number {
                    least: 1,
                    most: 500,
                    default: Some(50),
                },
                "How many at most.",
            ),
            query("cursor", Form::Text, "`next_cursor` of the page before."),
        ],
        answers: &[ok("DecisionsResponse", "Newest first.")],
        own_problems: &[Slug::Unavailable],
        ..PLAIN
    },
    Route {
        path: "/v1/decisions/{id}",
        id: "decision",
        summary: "One decision with its outcomes",
        parameters: &[in_path("id", Form::Uuid, "Its id.")],
        answers: &[ok(
            "DecisionWithOutcomes",
            "The record and what happened to it.",
        )],
        own_problems: &[Slug::NotFound, Slug::Unavailable],
        ..PLAIN
    },
    Route {
        path: "/v1/report",
        id: "report",
        summary: "What routing brought",
        about: "Decisions by tier and source, success, escalations, cost and savings with their assumptions; the tenant's own.",
        parameters: &[query(
            "since",
            Form::Since,
            "From when on; 7 days ago when absent.",
        )],
        answers: &[ok("ReportResponse", "The report.")],
        own_problems: &[Slug::Unavailable],
        ..PLAIN
    },
    Route {
        path: "/v1/policy",
        id: "policy",
        summary: "The policy in force",
        answers: &[ok("PolicyResponse", "The policy with its warnings.")],
        ..PLAIN
    },
    Route {
        path: "/v1/models",
        id: "models",
        summary: "Models by tier, and whether a decision model serves",
        answers: &[ok("ModelsResponse", "Models in order of preference.")],
        ..PLAIN
    },
    Route {
        path: "/v1/contract",
        id: "contract",
        summary: "The questions in force",
        answers: &[ok(
            "ContractResponse",
            "The 18 questions with their digests.",
        )],
        ..PLAIN
    },
    Route {
        path: "/health",
        id: "health",
        summary: "Whether a decision model serves",
        about: "`ok` is true only while one does, so that a client of the model falls back by itself.",
        access: Access::Open,
        answers: &[ok("HealthResponse", "Always.")],
        ..PLAIN
    },
    Route {
        path: "/ready",
        id: "ready",
        summary: "Whether the router can do its job",
        about: "Rules alone are ready.",
        access: Access::Open,
        answers: &[
            ok("Readiness", "It can."),
            Answer {
                status: 503,
                content: Content::Json("Readiness"),
                about: "It cannot, and why.",
            },
        ],
        ..PLAIN
    },
    Route {
        path: "/metrics",
        id: "metrics",
        summary: "Metrics for Prometheus",
        about: "Also on the admin port, without a token.",
        access: Access::Token,
        answers: &[Answer {
            status: 200,
            content: Content::Metrics,
            about: "All of them.",
        }],
        ..PLAIN
    },
    Route {
        path: "/openapi.json",
        id: "openapi",
        summary: "This document",
        access: Access::Open,
        answers: &[Answer {
            status: 200,
            content: Content::AnyJson,
            about: "OpenAPI 3.1.",
        }],
        ..PLAIN
    },
];
