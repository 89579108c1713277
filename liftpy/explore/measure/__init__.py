"""Building, checking and timing candidates, in processes that may crash or hang."""
