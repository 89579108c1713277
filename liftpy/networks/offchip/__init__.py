"""Plans of off-chip traffic: e-PlaNNer (Kim 2020), for sums of products of any shape."""
