"""The results of a campaign as tables, plots and HTML pages."""
