"""Files: what is read is looked at first, what is written is there whole or not at all."""
