from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.model.findings import Domain, Finding, Provenance, Remedy, Role
from relight.model.instants import from_iso, later, seconds, to_iso
from relight.model.jobs import AttemptKey
from relight.perception.ears import Ears, Lexicon
from relight.perception.kernel.bursts import merged
from relight.perception.kernel.hearing import Heard, Stretch, Watch, hear, is_of
from relight.rules.loading import load

LEXICON = Lexicon(load())
EARS = Ears(LEXICON, AttemptKey.parse("main:7-0"), Provenance.KERNEL)
SINCE = from_iso("2026-03-30T06:20:00Z")
UNTIL = from_iso("2026-03-30T06:40:00Z")
WATCH = Watch(ears=EARS, node="gpu-7", since=SINCE, until=UNTIL, now=UNTIL, zone=UTC)
OFF_THE_BUS = "NVRM: Xid (PCI:0000:b3:00): 79, pid=812, GPU has fallen off the bus."


def said(*messages: str, host: str = "gpu-7", tag: str = "kernel", apart: int = 1) -> bytes:
    """Return lines of a gathered log, the first at 06:24:00."""
    begin = from_iso("2026-03-30T06:24:00Z")
    times = [to_iso(later(begin, seconds(number * apart))) for number in range(len(messages))]
    lines = [f"{at} {host} {tag}: {text}\n" for at, text in zip(times, messages, strict=True)]
    return "".join(lines).encode()


def heard(data: bytes) -> Heard:
    return hear(Stretch(file="/srv/log/gpu-7/kern.log", offset=1_000, data=data), WATCH)


def only(data: bytes) -> Finding:
    (finding,) = heard(data).findings
    return finding


def test_a_line_of_the_kernel_blames_the_node_whose_log_it_is() -> None:
    data = said("usb 1-1: new device", OFF_THE_BUS, host="GPU-7.hpc.example")
    finding = only(data)
    assert finding.rule == "gpu-fallen-off-bus"
    assert finding.provenance is Provenance.KERNEL
    assert (finding.nodes, finding.devices) == (("gpu-7",), ("0000:b3:00",))
    assert finding.at == from_iso("2026-03-30T06:24:01Z")
    assert finding.place is not None
    assert finding.place.offset == 1_000 + data.index(b"\n") + 1
    assert [one.is_root for one in finding.evidence] == [False, True]
    assert "gpu-7" in finding.sentence


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (said(OFF_THE_BUS, host="gpu-8"), "another host"),
        (said(OFF_THE_BUS, tag="mallory[812]"), "another program"),
        (f"[12345.678901] {OFF_THE_BUS}\n".encode(), "no time of day"),
        (f"2026-03-30T06:19:59Z gpu-7 kernel: {OFF_THE_BUS}\n".encode(), "too early"),
        (f"2026-03-30T06:40:01Z gpu-7 kernel: {OFF_THE_BUS}\n".encode(), "too late"),
        (said("NVRM: Xid (PCI:0000:b3:00): 63, Row Remapper: New row marked"), "harmless"),
        (said("slurmstepd: error: *** JOB 7 CANCELLED AT 2026-03-30T06:24:00 ***"), "an end"),
    ],
)
def test_what_is_not_surely_of_this_node_now_blames_nobody(line: bytes, why: str) -> None:
    assert heard(line).findings == [], why


def test_what_was_passed_over_is_counted() -> None:
    found = heard(said(OFF_THE_BUS, host="gpu-8") + f"[12345.678] {OFF_THE_BUS}\n".encode())
    assert (found.foreign, found.timeless) == (1, 1)


def test_zeros_that_a_crash_left_before_a_line_do_not_hide_it() -> None:
    assert only(b"\0" * 100 + said(OFF_THE_BUS)).rule == "gpu-fallen-off-bus"


def test_the_same_line_has_the_same_id_wherever_it_lies() -> None:
    line = said(OFF_THE_BUS)
    rotated = hear(Stretch(file="/srv/log/gpu-7/kern.log.1", offset=0, data=line), WATCH)
    assert rotated.findings[0].id == only(line).id
    assert only(said("x", OFF_THE_BUS)).id != only(line).id


XIDS = "NVRM: Xid (PCI:0000:b3:00): {}, pid=812, name=python, "


@pytest.mark.parametrize(
    ("code", "role", "domain", "remedy"),
    [
        (43, Role.SYMPTOM, Domain.UNKNOWN, Remedy.REPORT),
        (45, Role.SYMPTOM, Domain.UNKNOWN, Remedy.REPORT),
        (13, Role.EITHER, Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP),
        (31, Role.EITHER, Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP),
        (137, Role.EITHER, Domain.APPLICATION, Remedy.CONFIRM_THEN_STOP),
        (48, Role.ROOT, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN),
        (64, Role.ROOT, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN),
        (74, Role.ROOT, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN),
        (79, Role.ROOT, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN),
        (94, Role.ROOT, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE),
        (95, Role.ROOT, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN),
        (119, Role.ROOT, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN),
        (8, Role.EITHER, Domain.HARDWARE, Remedy.RESTART),
        (62, Role.ROOT, Domain.HARDWARE, Remedy.RESTART_EXCLUDING_NODE),
        (78, Role.ROOT, Domain.SYSTEM_SOFTWARE, Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN),
    ],
)
def test_an_xid_means_what_its_vendor_says(
    code: int, role: Role, domain: Domain, remedy: Remedy
) -> None:
    finding = only(said(XIDS.format(code)))
    assert (finding.role, finding.domain, finding.remedy) == (role, domain, remedy)
    assert f"code={code}" in finding.fingerprint


def test_every_code_of_the_catalogue_is_known() -> None:
    known = [8, 11, 13, 25, 31, 32, *range(37, 42), *range(43, 47), 48, 54, 60]
    known += [*range(62, 65), *range(66, 73), *range(74, 80), 80, *range(82, 87), 88, 89]
    known += [*range(92, 108), 109, 110, *range(119, 122), *range(126, 138), *range(139, 152)]
    known += range(154, 173)
    lines = {code: XIDS.format(code).encode() for code in known}
    silent = [code for code, line in lines.items() if not LEXICON.matcher.scan(line + b"\n")]
    assert silent == [144, 145, 146, 147, 148, 149, 150, 154], "these need more words to be told"


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("mlx5_core 0000:9a:00.0 ib3: Link down", "adapter-link-down"),
        ("mce: [Hardware Error]: Machine check: Processor context corrupt", "kernel-machine-check"),
        ("watchdog: BUG: soft lockup - CPU#63 stuck for 26s! [python:48211]", "kernel-lockup"),
        ("Out of memory: Killed process 4242 (python) total-vm:1kB", "host-oom-kill"),
        ("nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 22013, Fatal, Link 10", "gpu-nvlink-error"),
        ("pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received", "kernel-pcie-fatal"),
        ("EDAC MC3: 1 UE memory read error on CPU_SrcID#1", "kernel-machine-check"),
        ("nvme nvme1: I/O 832 QID 5 timeout, aborting", "local-disk-error"),
    ],
)
def test_other_troubles_of_a_machine_are_heard(message: str, rule: str) -> None:
    assert rule in {one.rule for one in heard(said(message)).findings}


@pytest.mark.parametrize(
    ("host", "node", "same"),
    [
        ("gpu-7", "gpu-7", True),
        ("GPU-7", "gpu-7", True),
        ("gpu-7.a.example", "gpu-7", True),
        ("gpu-7", "gpu-7.a.example", True),
        ("gpu-7.b.example", "gpu-7.a.example", False),
        ("gpu-77", "gpu-7", False),
        ("10.1.2.3", "gpu-7", True),
        ("fe80::1", "gpu-7", True),
        ("localhost", "gpu-7", True),
        ("", "gpu-7", True),
    ],
)
def test_a_host_is_the_node_unless_it_is_surely_another(
    host: str, node: str, *, same: bool
) -> None:
    assert is_of(host, node) is same


def test_lines_of_one_trouble_are_one_finding_with_their_count() -> None:
    (finding,) = merged(heard(said(*[OFF_THE_BUS] * 40)).findings)
    assert finding.count == 40
    assert finding.at == from_iso("2026-03-30T06:24:00Z")


def test_trouble_after_a_pause_on_another_device_or_with_another_code_is_told_again() -> None:
    other = OFF_THE_BUS.replace("b3", "b4")
    findings = heard(said(OFF_THE_BUS, other, XIDS.format(48))).findings
    assert len(merged(findings)) == 3
    paused = heard(said(OFF_THE_BUS, OFF_THE_BUS, OFF_THE_BUS, apart=181)).findings
    assert [one.count for one in merged(paused)] == [1, 1, 1]
    assert merged(merged(findings)) == merged(findings)


def test_a_flood_is_bounded_and_said_to_be_one() -> None:
    found = heard(said(*[OFF_THE_BUS] * 700))
    assert len(found.findings) == 500
    assert found.is_full


@settings(max_examples=60)
@given(st.binary(max_size=600), st.binary(max_size=60))
def test_any_bytes_are_heard_without_harm(before: bytes, after: bytes) -> None:
    found = heard(before + b"\n" + said(OFF_THE_BUS) + after)
    assert OFF_THE_BUS in {one.evidence[-1].text[-len(OFF_THE_BUS) :] for one in found.findings}
