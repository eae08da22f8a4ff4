"""Parses OpenMetrics text with the parser of the Prometheus project, which checks it."""

import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

with open(sys.argv[1], encoding="utf-8") as file:
    families = list(text_string_to_metric_families(file.read()))
samples = [sample for family in families for sample in family.samples]
assert len(families) > 30, families
assert len(samples) > 60, samples
for family in families:
    assert family.documentation, family
    assert family.type in ("counter", "gauge", "histogram", "info"), family
    is_foreign = family.name.startswith("process_")
    assert is_foreign or family.name.startswith("smbeam_"), family
    if family.unit:
        assert family.name.endswith("_" + family.unit), family
