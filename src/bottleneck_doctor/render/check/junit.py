"""A check as JUnit XML: a `Check` in, one test case a metric out, as Jenkins, GitLab and others read them.

What can't be told is skipped and not failed: a test that failed would say that something is worse.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from bottleneck_doctor.documents.check import Check, Losses, Metric
from bottleneck_doctor.wording import check_words, race_words, words

MOST_NOTES = 20

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't hold, not even escaped."""


def render(check: Check) -> str:
    """The whole document."""
    script = check_words.script(check)
    cases = [_case(check, each, script) for each in check.metrics if each.level != "off"]
    cases += [] if check.losses is None else [_loss_case(check, check.losses, script)]
    cases += [_raced_case(each, script) for each in race_words.rows(check)[1:]]
    if not cases:
        # A suite without cases is taken for a job that broke.
        case = _element("testcase", classname=script, name="check")
        _child(case, "skipped", check.sentence, message=check.sentence)
        cases = [case]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(each.find("failure") is not None for each in cases)),
        "errors": "0",
    }
    time = f"{max(0.0, check.seconds):.3f}"
    suites = _element("testsuites", name="bottleneck-doctor", time=time, **counts)
    suite = _element(
        "testsuite",
        name=f"bottleneck-doctor {'check' if check.edit is None else 'try'} {script}",
        skipped=str(sum(each.find("skipped") is not None for each in cases)),
        # Without its zone, as the schema of Ant's task has it.
        timestamp=check.created[:19],
        time=time,
        **counts,
    )
    properties = _element("properties")
    for name, value in _properties(check).items():
        properties.append(_element("property", name=name, value=value))
    suite.append(properties)
    suite.extend(cases)
    notes = [f"{each.sentence} [{each.slug}]" for each in check.warnings[:MOST_NOTES]]
    _child(suite, "system-out", "\n".join([check.sentence, *notes]))
    suites.append(suite)
    ElementTree.indent(suites, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _case(check: Check, metric: Metric, script: str) -> ElementTree.Element:
    case = _element("testcase", classname=script, name=f"{metric.id}: {metric.title}", time="0")
    site, sides = check_words.place_of(check, metric), check_words.side_words(check)
    details = [
        metric.sentence,
        f"{sides.base_title.lower()} {check_words.value_text(metric, metric.base)}, "
        f"{sides.head_title.lower()} {check_words.value_text(metric, metric.head)}",
        f"change {check_words.change_text(metric)}, "
        f"threshold {check_words.amount_text(metric.unit, metric.threshold)}, "
        f"smallest detectable change {check_words.amount_text(metric.unit, metric.smallest)}",
        *([] if site is None else [f"at {check_words.site_text(site)}"]),
        *(each.sentence for each in check_words.grown(check, metric)),
    ]
    text = "\n".join(details)
    if check_words.fails(metric):
        _child(case, "failure", text, type=metric.verdict, message=metric.sentence)
    elif metric.verdict in ("cannot_tell", "not_measured"):
        _child(case, "skipped", text, message=metric.sentence)
    else:
        prefix = "warning: " if check_words.is_finding(metric) else ""
        _child(case, "system-out", prefix + text)
    return case


def _loss_case(check: Check, losses: Losses, script: str) -> ElementTree.Element:
    case = _element("testcase", classname=script, name="losses: Losses", time="0")
    if check_words.loss_fails(check):
        _child(case, "failure", losses.sentence, type=losses.verdict, message=losses.sentence)
    elif losses.verdict == "unknown":
        _child(case, "skipped", losses.sentence, message=losses.sentence)
    else:
        prefix = "warning: " if check_words.loss_moved(losses) else ""
        _child(case, "system-out", prefix + losses.sentence)
    return case


def _raced_case(row: race_words.Row, script: str) -> ElementTree.Element:
    """Another edit of the race. One that is worse than the best has failed nobody."""
    case = _element("testcase", classname=script, name=f"edit: {row.cells[0]}", time="0")
    _child(case, "system-out", f"{row.cells[-1]}: {row.sentence}")
    return case


def _properties(check: Check) -> dict[str, str]:
    found = {
        "base": check_words.side_text(check.base),
        "head": check_words.side_text(check.head),
        "status": check.status,
        "pairs": str(len(check.pairs)),
        "steady": "yes" if check.steady else "no",
        "version": check.tool.version,
    }
    if check.edit is not None and check.edit.speedup is not None:
        found["speedup"] = f"{words.estimate_text(check.edit.speedup)} ({words.interval_text(check.edit.speedup)})"
    if check.stored is not None:
        found["processes"] = str(len(check.processes))
        found["machine"] = "another than the baseline's" if check.stored.different else "the baseline's"
    if check.command:
        found["command"] = words.command_text(check.command)
    return found


def _element(tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.Element(tag, {name: _text(value) for name, value in attributes.items()})


def _child(parent: ElementTree.Element, tag: str, text: str, **attributes: str) -> None:
    child = _element(tag, **attributes)
    child.text = _text(text)
    parent.append(child)


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", words.clipped(words.visible(text), 4 * check_words.SENTENCE_LIMIT))
