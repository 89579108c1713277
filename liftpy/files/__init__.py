"""Files: checked reads, and atomic writes."""
