"""Rules as data, the cache of their proofs, and the strategies that derive programs by them."""
