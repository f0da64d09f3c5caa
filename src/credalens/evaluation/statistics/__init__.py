"""How sure a metric is: intervals and paired tests."""
