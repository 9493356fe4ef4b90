"""Reports: all metrics of a model at once, as tables, a picture or a page."""

from umpteen.report.evaluating import evaluate
from umpteen.report.report import Example, Report

__all__ = ["Example", "Report", "evaluate"]
