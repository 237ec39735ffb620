//! The simple tests of the language's specification (<https://github.com/google/cel-spec>), which
//! are not part of the project.

#[expect(dead_code, reason = "the runner of the tests follows")]
mod textproto;
