"""The version of liftpy that a campaign records: results of different versions are not mixed."""

VERSION = "0.1.0"
