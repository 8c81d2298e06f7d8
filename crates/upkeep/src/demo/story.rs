//! What the sample tells: projects, sessions, turns and steps.

use headwater_model::UnixMillis;

/// A project of the sample.
pub(super) struct Project {
    pub(super) id: &'static str,
    pub(super) directory: &'static str,
}

/// Which tables hold a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    V1,
    V2,
    /// Written by 1.x, migrated by 2.x, still in the tables of both.
    Both,
    /// Written by 1.x, migrated, deleted in 2.x: the rows of 1.x are left over, and an event says so.
    LeftOver,
}

impl Layout {
    pub(super) const fn has_v1(self) -> bool {
        !matches!(self, Self::V2)
    }

    pub(super) const fn has_v2(self) -> bool {
        matches!(self, Self::V2 | Self::Both)
    }
}

/// One step of the assistant before it answers.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// A shell command and about this many bytes of output.
    Run(&'static str, usize),
    /// A file that is read, and its size.
    Read(&'static str, usize),
    /// A file that is edited, and the size of its diff.
    Edit(&'static str, usize),
}

/// A question and its answer.
pub(super) struct Turn {
    pub(super) ask: &'static str,
    pub(super) steps: &'static [Step],
    pub(super) answer: &'static str,
}

/// A session as it is told.
pub(super) struct Story {
    pub(super) title: &'static str,
    pub(super) project: usize,
    pub(super) layout: Layout,
    /// Days between its last use and the present.
    pub(super) used_days_ago: i64,
    /// Place of the parent session in [`STORIES`].
    pub(super) parent: Option<usize>,
    /// How often the turns repeat, with other output each time.
    pub(super) rounds: usize,
    /// Whether everything before the last round was compacted.
    pub(super) is_compacted: bool,
    pub(super) is_archived: bool,
    pub(super) turns: &'static [Turn],
}

/// A session as it is written.
pub(super) struct Session<'a> {
    pub(super) id: &'a str,
    pub(super) parent: Option<&'a str>,
    pub(super) story: &'a Story,
    /// Its last use.
    pub(super) start: UnixMillis,
}

impl Session<'_> {
    pub(super) fn project(&self) -> &'static Project {
        &PROJECTS[self.story.project]
    }
}

pub(super) const PROJECTS: [Project; 3] = [
    Project { id: "3f1c9d0c6f0f4a4fb2f9f5a6d1f0c7e2b8a41d55", directory: "/home/ada/parcel-queue" },
    Project { id: "a90b77e21c5d4e0f8b6a3c2d1e0f9a8b7c6d5e4f", directory: "/home/ada/weather-map" },
    Project { id: "global", directory: "/" },
];

const PLAIN: Story = Story {
    title: "",
    project: 0,
    layout: Layout::V1,
    used_days_ago: 0,
    parent: None,
    rounds: 1,
    is_compacted: false,
    is_archived: false,
    turns: &[],
};

pub(super) const STORIES: &[Story] = &[
    Story { title: "Retry uploads with backoff", rounds: 4, is_compacted: true, turns: UPLOADS, ..PLAIN },
    Story { title: "Find callers of flush (@explore subagent)", parent: Some(0), turns: EXPLORE, ..PLAIN },
    Story { title: "Flaky test in the parcel queue", used_days_ago: 3, rounds: 3, turns: FLAKY, ..PLAIN },
    Story {
        title: "Draw wind arrows on the map",
        project: 1,
        used_days_ago: 9,
        rounds: 2,
        turns: ARROWS,
        ..PLAIN
    },
    Story { title: "日本語の天気表示", project: 1, used_days_ago: 21, turns: JAPANESE, ..PLAIN },
    Story { title: "Rename the settings file", used_days_ago: 64, is_archived: true, turns: RENAME, ..PLAIN },
    Story {
        title: "Old spike: binary protocol",
        project: 2,
        used_days_ago: 190,
        rounds: 2,
        turns: SPIKE,
        ..PLAIN
    },
    Story {
        title: "Cache tiles on disk",
        project: 1,
        used_days_ago: 33,
        layout: Layout::Both,
        turns: ARROWS,
        ..PLAIN
    },
    Story {
        title: "Notes on releases",
        project: 2,
        used_days_ago: 80,
        layout: Layout::LeftOver,
        turns: RENAME,
        ..PLAIN
    },
    Story {
        title: "Metrics for the queue",
        used_days_ago: 1,
        layout: Layout::V2,
        rounds: 3,
        is_compacted: true,
        turns: FLAKY,
        ..PLAIN
    },
    Story {
        title: "Zoom with the keyboard",
        project: 1,
        used_days_ago: 14,
        layout: Layout::V2,
        turns: ARROWS,
        ..PLAIN
    },
];

const UPLOADS: &[Turn] = &[
    Turn {
        ask: "Uploads fail for good when the gateway answers 503. Please retry them with backoff.",
        steps: &[
            Step::Run("cargo test upload", 14_000),
            Step::Read("src/upload.rs", 11_000),
            Step::Edit("src/upload.rs", 16_000),
        ],
        answer: "Uploads are tried again up to five times. The delay doubles from 200 ms and has full jitter, and a 4xx answer is final.",
    },
    Turn {
        ask: "Does the retry keep the idempotency key?",
        steps: &[Step::Read("src/upload/request.rs", 9_000)],
        answer: "Yes: the idempotency key is made once per upload, before the first attempt, and each attempt sends the same one.",
    },
    Turn {
        ask: "Add a test with a clock that the test moves.",
        steps: &[Step::Edit("tests/upload.rs", 12_000), Step::Run("cargo test --all", 30_000)],
        answer: "The test drives the delays with a manual clock: no sleeping, and the delays are asserted one by one.",
    },
];

const EXPLORE: &[Turn] = &[Turn {
    ask: "Find every caller of flush() and say whether it handles the error.",
    steps: &[Step::Run("rg -n 'flush\\(' src", 6_000), Step::Read("src/writer.rs", 14_000)],
    answer: "Seven callers. Six pass the error on; `Writer::drop` ignores it, which is deliberate and has a comment.",
}];

const FLAKY: &[Turn] = &[
    Turn {
        ask: "queue::drains_in_order fails about once in fifty runs. Why?",
        steps: &[Step::Run("cargo test queue -- --nocapture", 28_000), Step::Read("src/queue.rs", 17_000)],
        answer: "Two workers race for the last parcel: the check of the length and the pop are not under one lock.",
    },
    Turn {
        ask: "Fix it without a bigger lock.",
        steps: &[Step::Edit("src/queue.rs", 18_000), Step::Run("cargo test queue", 20_000)],
        answer: "`pop` itself now says whether a parcel was there, so that nobody has to ask for the length first.",
    },
];

const ARROWS: &[Turn] = &[
    Turn {
        ask: "Draw an arrow for the wind in each cell; its length is the speed.",
        steps: &[
            Step::Read("web/map.ts", 12_000),
            Step::Edit("web/map.ts", 20_000),
            Step::Run("npm test", 9_000),
        ],
        answer: "Arrows are drawn on the canvas above the tiles. Below 0.5 m/s a cell shows a dot.",
    },
    Turn {
        ask: "They flicker while panning.",
        steps: &[Step::Edit("web/layer.ts", 8_000)],
        answer: "The layer is drawn once per frame, in the same callback that moves the tiles.",
    },
];

const JAPANESE: &[Turn] = &[Turn {
    ask: "天気予報の表示を日本語にしてください。",
    steps: &[Step::Read("web/i18n/ja.json", 7_000), Step::Edit("web/i18n/ja.json", 9_000)],
    answer: "天気予報の表示を日本語に変更しました。気温は摂氏、風速はメートル毎秒です。",
}];

const RENAME: &[Turn] = &[Turn {
    ask: "Rename settings.json to config.toml and read the old file where only that exists.",
    steps: &[Step::Edit("src/config.rs", 11_000), Step::Run("cargo test config", 7_000)],
    answer: "config.toml wins; settings.json is read where it stands alone, with one line of warning.",
}];

const SPIKE: &[Turn] = &[Turn {
    ask: "Would a binary protocol be worth it? Measure.",
    steps: &[Step::Run("cargo bench protocol", 24_000), Step::Read("benches/protocol.rs", 13_000)],
    answer: "Not here: encoding is 4 % of a request. The spike stays on a branch.",
}];
