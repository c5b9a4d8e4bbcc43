"""Rules over metrics: a PromQL expression, what its result means, and cases that prove it."""

from relight.rules.metrics.judging import findings_of
from relight.rules.metrics.loading import MetricRuleError, load_metric_rules
from relight.rules.metrics.schema import MetricRule

__all__ = ["MetricRule", "MetricRuleError", "findings_of", "load_metric_rules"]
