"""Rules as data, the ledger of their proofs, and the strategies that derive programs by them."""
