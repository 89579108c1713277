-- A campaign as format 1 kept it, with four candidates: measured, refused, under way, and refused
-- by its driver.
PRAGMA application_id = 1818846836;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE campaign (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    program  TEXT NOT NULL,
    text     TEXT NOT NULL,
    device   TEXT NOT NULL,
    driver   TEXT NOT NULL,
    version  TEXT NOT NULL,
    seed     INTEGER NOT NULL,
    settings TEXT NOT NULL,
    created  REAL NOT NULL
);
INSERT INTO "campaign" VALUES(1,'twice','def twice(x: [12]f32) = x |> map(x => x + x)
','{"compute_units": 1, "driver_version": "0", "extensions": ["cl_khr_fp16", "cl_khr_fp64"], "fingerprint": "0f3680d95ee2", "global_memory": 4294967296, "largest_buffer": 1073741824, "local_memory": 32768, "max_work_group_size": 1024, "max_work_item_sizes": [1024, 1024, 1024], "name": "generic", "opencl_c": "OpenCL C 1.2", "ordinal": 0, "platform": "generic", "private_memory": 8192, "profile": "", "type": "GPU", "vector_width": 4, "vendor": "liftpy"}','0','0.1.0',0,'{"families": null, "memory_limit": null}',1700000000.0);
CREATE TABLE candidate (
    key        TEXT PRIMARY KEY,
    ordinal    INTEGER NOT NULL UNIQUE,
    skeleton   TEXT NOT NULL,
    steps      TEXT NOT NULL,
    assignment TEXT NOT NULL,
    source     TEXT,
    source_sha TEXT,
    manifest   TEXT
);
INSERT INTO "candidate" VALUES('13845bfd813d',0,'plain()','[]','{"words": {"family": "plain"}, "sizes": {}}','kernel void k() {}','dbdbab5ac657365667df684c735ac17b5bf6abb91aa53473e9f9a914890af413','{
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
');
INSERT INTO "candidate" VALUES('2a39913277e7',1,'staged(unroll=no)','[]','{"words": {"family": "staged", "unroll": "no"}, "sizes": {"theta": 532, "rho": 539}}',NULL,NULL,NULL);
INSERT INTO "candidate" VALUES('f3e23dc4ae9d',2,'direct(pad=copy)','[]','{"words": {"family": "direct", "pad": "copy"}, "sizes": {"kappa": 3}}',NULL,NULL,NULL);
INSERT INTO "candidate" VALUES('6304ebe7228a',3,'staged(unroll=no)','[]','{"words": {"family": "staged", "unroll": "no"}, "sizes": {"theta": 202, "rho": 906}}','kernel void k() {}','dbdbab5ac657365667df684c735ac17b5bf6abb91aa53473e9f9a914890af413','{
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
');
CREATE TABLE learned (
    candidate TEXT PRIMARY KEY REFERENCES candidate (key),
    kernel    TEXT NOT NULL,
    figure    TEXT NOT NULL,
    number    INTEGER NOT NULL
);
INSERT INTO "learned" VALUES('6304ebe7228a','k','group',64);
CREATE TABLE outcome (
    candidate     TEXT PRIMARY KEY REFERENCES candidate (key),
    kind          TEXT NOT NULL,
    reason        TEXT NOT NULL,
    attempts      INTEGER NOT NULL,
    time_ns       INTEGER,
    times_ns      TEXT,
    prepare_ns    INTEGER,
    peak          INTEGER,
    allocated     INTEGER,
    scratch       INTEGER,
    local         INTEGER,
    private       INTEGER,
    "prepare"     INTEGER,
    error         REAL,
    build_seconds REAL,
    started       REAL NOT NULL,
    finished      REAL
);
INSERT INTO "outcome" VALUES('13845bfd813d','measured','right to 2.5e-07, 3 run(s)',1,25,'[[30, 1], [10, 1], [20, 5]]',7,40,50,10,3,4,5,2.5e-07,0.5,1700000000.0,1700000000.0);
INSERT INTO "outcome" VALUES('2a39913277e7','refused','too large',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1700000000.0,1700000000.0);
INSERT INTO "outcome" VALUES('f3e23dc4ae9d','running','under way',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1700000000.0,NULL);
INSERT INTO "outcome" VALUES('6304ebe7228a','refused','too many work-items',1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1700000000.0,1700000000.0);
COMMIT;
