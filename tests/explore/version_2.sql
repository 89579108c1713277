-- A campaign as format 2 kept it, with four candidates: measured, refused, disturbed, under way.
PRAGMA application_id = 1818846836;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE build (                     -- written before anything is built
    candidate   TEXT PRIMARY KEY REFERENCES candidate ("key"),
    fingerprint TEXT NOT NULL,           -- of device, driver and platform
    driver      TEXT NOT NULL,
    options     TEXT,                    -- NULL: format 1 did not keep them
    source      TEXT NOT NULL,
    source_sha  TEXT NOT NULL,
    manifest    TEXT NOT NULL,           -- JSON: launches, buffers, memory
    log         TEXT,                    -- what the driver wrote
    seconds     REAL
);
INSERT INTO "build" VALUES('13845bfd813d','0f3680d95ee2','0','-cl-std=CL1.2 -cl-mad-enable -cl-no-signed-zeros','kernel void k() {}','dbdbab5ac657365667df684c735ac17b5bf6abb91aa53473e9f9a914890af413','{
  "buffers": [],
  "extensions": [],
  "launches": [],
  "memory": {
    "allocated": 50,
    "local": 3,
    "peak": 40,
    "prepare": 5,
    "private": 4,
    "scratch": 10
  },
  "name": "twice",
  "parameters": [],
  "result": "out"
}
','built',0.5);
INSERT INTO "build" VALUES('6304ebe7228a','0f3680d95ee2','0','-cl-std=CL1.2 -cl-mad-enable -cl-no-signed-zeros','kernel void k() {}','dbdbab5ac657365667df684c735ac17b5bf6abb91aa53473e9f9a914890af413','{
  "buffers": [],
  "extensions": [],
  "launches": [],
  "memory": {
    "allocated": 50,
    "local": 3,
    "peak": 40,
    "prepare": 5,
    "private": 4,
    "scratch": 10
  },
  "name": "twice",
  "parameters": [],
  "result": "out"
}
','built',0.5);
CREATE TABLE call (                      -- each time that the campaign was started or resumed
    id          INTEGER PRIMARY KEY,
    started     REAL NOT NULL,
    ended       REAL,                    -- NULL: it runs, or ended abruptly
    command     TEXT NOT NULL,
    limits      TEXT NOT NULL,           -- JSON: what may differ between calls
    environment TEXT NOT NULL            -- JSON: versions, system, processor
);
INSERT INTO "call" VALUES(1,12.5,1.7953075061256611347e+09,'liftpy explore twice','{"samples": 4}','{"python": "3.12"}');
CREATE TABLE campaign (                  -- one row
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    program    TEXT NOT NULL,
    expression TEXT NOT NULL REFERENCES expression (hash),
    device     TEXT NOT NULL,            -- JSON: its limits, driver and fingerprint
    driver     TEXT NOT NULL,
    version    TEXT NOT NULL,            -- of liftpy
    seed       INTEGER NOT NULL,
    "cursor"   INTEGER NOT NULL,         -- the next place in the drawing order
    settings   TEXT NOT NULL,            -- JSON: what decides candidates and their check
    created    REAL NOT NULL
);
INSERT INTO "campaign" VALUES(1,'twice','645a27fdb4492c31bbf93de6d823223e30700d08751abe9629736f0e773283b4','{"compute_units": 1, "driver_version": "0", "extensions": ["cl_khr_fp16", "cl_khr_fp64"], "fingerprint": "0f3680d95ee2", "global_memory": 4294967296, "largest_buffer": 1073741824, "local_memory": 32768, "max_work_group_size": 1024, "max_work_item_sizes": [1024, 1024, 1024], "name": "generic", "opencl_c": "OpenCL C 1.2", "ordinal": 0, "platform": "generic", "private_memory": 8192, "profile": "", "type": "GPU", "vector_width": 4, "vendor": "liftpy"}','0','0.1.0',0,4,'{"families": null, "memory_limit": null}',1.79530750611731290816e+09);
CREATE TABLE candidate (
    "key"      TEXT PRIMARY KEY,
    ordinal    INTEGER NOT NULL UNIQUE,  -- its place in the order; below 0: not drawn
    derivation TEXT NOT NULL REFERENCES derivation (hash),
    assignment TEXT NOT NULL,            -- JSON: words and sizes
    version    TEXT NOT NULL             -- of liftpy
);
INSERT INTO "candidate" VALUES('13845bfd813d',0,'f0c2963db29f6fa9c62f6593e7e0a8d725b3f6c5c1106fc2976f0a2eccda2832','{"words": {"family": "plain"}, "sizes": {}}','0.1.0');
INSERT INTO "candidate" VALUES('2a39913277e7',1,'a763adcb8d2e1c4e69365837dea5360d8a663cfcfe5b858ee32ccb6b7ee6d77a','{"words": {"family": "staged", "unroll": "no"}, "sizes": {"theta": 532, "rho": 539}}','0.1.0');
INSERT INTO "candidate" VALUES('6304ebe7228a',3,'a763adcb8d2e1c4e69365837dea5360d8a663cfcfe5b858ee32ccb6b7ee6d77a','{"words": {"family": "staged", "unroll": "no"}, "sizes": {"theta": 202, "rho": 906}}','0.1.0');
INSERT INTO "candidate" VALUES('f3e23dc4ae9d',2,'ba9b47ae041aad972d68aa87ef7d86cd14ef98429f815c794eeedaa71e76d5ac','{"words": {"family": "direct", "pad": "copy"}, "sizes": {"kappa": 3}}','0.1.0');
CREATE TABLE derivation (
    hash       TEXT PRIMARY KEY,         -- sha256 of expression, skeleton and steps
    expression TEXT NOT NULL REFERENCES expression (hash),
    skeleton   TEXT NOT NULL,
    steps      TEXT NOT NULL             -- JSON: rule, place and sizes of each step
);
INSERT INTO "derivation" VALUES('f0c2963db29f6fa9c62f6593e7e0a8d725b3f6c5c1106fc2976f0a2eccda2832','645a27fdb4492c31bbf93de6d823223e30700d08751abe9629736f0e773283b4','plain()','[]');
INSERT INTO "derivation" VALUES('a763adcb8d2e1c4e69365837dea5360d8a663cfcfe5b858ee32ccb6b7ee6d77a','645a27fdb4492c31bbf93de6d823223e30700d08751abe9629736f0e773283b4','staged(unroll=no)','[]');
INSERT INTO "derivation" VALUES('ba9b47ae041aad972d68aa87ef7d86cd14ef98429f815c794eeedaa71e76d5ac','645a27fdb4492c31bbf93de6d823223e30700d08751abe9629736f0e773283b4','direct(pad=copy)','[]');
CREATE TABLE expression (
    hash TEXT PRIMARY KEY,               -- sha256 of the text
    text TEXT NOT NULL
);
INSERT INTO "expression" VALUES('645a27fdb4492c31bbf93de6d823223e30700d08751abe9629736f0e773283b4','def twice(x: [12]f32) = x |> map(x => x + x)
');
CREATE TABLE learned (                   -- what drivers said of built kernels
    candidate TEXT PRIMARY KEY REFERENCES candidate ("key"),
    kernel    TEXT NOT NULL,
    figure    TEXT NOT NULL,
    number    INTEGER NOT NULL
);
CREATE TABLE outcome (                   -- `running` before anything is launched
    candidate  TEXT PRIMARY KEY REFERENCES candidate ("key"),
    kind       TEXT NOT NULL,
    reason     TEXT NOT NULL,
    attempts   INTEGER NOT NULL,
    time_ns    INTEGER,                  -- the median when it was first measured
    prepare_ns INTEGER,
    peak       INTEGER,
    allocated  INTEGER,
    scratch    INTEGER,
    local      INTEGER,
    private    INTEGER,
    "prepare"  INTEGER,
    started    REAL NOT NULL,
    finished   REAL
);
INSERT INTO "outcome" VALUES('13845bfd813d','measured','right to 2.5e-07 (rms 1.0e-07), 3 run(s)',1,25,7,40,50,10,3,4,5,1.79530750612234044072e+09,1.7953075061226217747e+09);
INSERT INTO "outcome" VALUES('2a39913277e7','refused','too large',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.79530750612354969976e+09,1.79530750612377667423e+09);
INSERT INTO "outcome" VALUES('6304ebe7228a','measured','right to 2.5e-07 (rms 1.0e-07), 3 run(s), disturbed: a fixed kernel took 1.70 times its usual time',1,25,7,40,50,10,3,4,5,1.79530750612430381775e+09,1.79530750612470388414e+09);
INSERT INTO "outcome" VALUES('f3e23dc4ae9d','running','under way',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1.79530750612538146974e+09,NULL);
CREATE TABLE run (                       -- every sample
    candidate TEXT NOT NULL REFERENCES candidate ("key"),
    "repeat"  INTEGER NOT NULL,
    launch    INTEGER NOT NULL,          -- in the order of the manifest's run phase
    ns        INTEGER NOT NULL,
    PRIMARY KEY (candidate, "repeat", launch)
) WITHOUT ROWID;
INSERT INTO "run" VALUES('13845bfd813d',0,0,30);
INSERT INTO "run" VALUES('13845bfd813d',0,1,1);
INSERT INTO "run" VALUES('13845bfd813d',1,0,10);
INSERT INTO "run" VALUES('13845bfd813d',1,1,1);
INSERT INTO "run" VALUES('13845bfd813d',2,0,20);
INSERT INTO "run" VALUES('13845bfd813d',2,1,5);
INSERT INTO "run" VALUES('6304ebe7228a',0,0,30);
INSERT INTO "run" VALUES('6304ebe7228a',0,1,1);
INSERT INTO "run" VALUES('6304ebe7228a',1,0,10);
INSERT INTO "run" VALUES('6304ebe7228a',1,1,1);
INSERT INTO "run" VALUES('6304ebe7228a',2,0,20);
INSERT INTO "run" VALUES('6304ebe7228a',2,1,5);
CREATE TABLE verification (              -- relative to the largest value of the meaning
    candidate TEXT PRIMARY KEY REFERENCES candidate ("key"),
    max_error REAL NOT NULL,
    rms_error REAL                       -- NULL: format 1 did not keep it
);
INSERT INTO "verification" VALUES('13845bfd813d',2.5e-07,1.0e-07);
INSERT INTO "verification" VALUES('6304ebe7228a',2.5e-07,1.0e-07);
COMMIT;
