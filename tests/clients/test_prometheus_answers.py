"""What is taken of an answer, and what is said of one that is none."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.clients.prometheus import AnswerTooLarge, MetricsError, QueryRefused, ServerFailed
from relight.clients.prometheus.answers import Answer, Bounds, plain, read_answer, refusal
from relight.model.instants import from_unix

URL = "http://metrics.example:9090"


def matrix(*rows: object, **extra: object) -> bytearray:
    data = {"resultType": "matrix", "result": list(rows)}
    return bytearray(json.dumps({"status": "success", "data": data, **extra}).encode())


def row(*values: tuple[float, str], **labels: str) -> dict[str, object]:
    return {"metric": labels, "values": [list(value) for value in values]}


def read(body: bytearray, bounds: Bounds | None = None) -> Answer:
    return read_answer(body, URL, bounds or Bounds())


def test_a_matrix_is_read_with_its_labels_and_samples() -> None:
    (only,) = read(matrix(row((10, "1.5"), (25, "2"), __name__="up", job="gpu"))).rows
    assert (only.metric, only.labels["job"]) == ("up", "gpu")
    assert [(one.at, one.value) for one in only.samples] == [
        (from_unix(10), 1.5),
        (from_unix(25), 2.0),
    ]


def test_a_vector_is_read_as_series_of_one_sample() -> None:
    told = {"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {}, "value": [7.25, "3"]}]}}  # fmt: skip
    (only,) = read(bytearray(json.dumps(told).encode())).rows
    assert [(one.at, one.value) for one in only.samples] == [(from_unix(7.25), 3.0)]


@pytest.mark.parametrize(
    "text", ["NaN", "nan", "+Inf", "-Inf", "", "x", "1e999", "1,5", "\x00", "0x10"]
)
def test_what_is_no_number_is_left_out(text: str) -> None:
    (only,) = read(matrix(row((1, "1"), (2, text), (3, "3")))).rows
    assert [one.value for one in only.samples] == [1.0, 3.0]


def test_samples_that_do_not_go_forward_or_are_of_no_time_are_left_out() -> None:
    (only,) = read(matrix(row((5, "1"), (5, "2"), (4, "3"), (6, "4"), (1e300, "5")))).rows
    assert [one.value for one in only.samples] == [1.0, 4.0]


@pytest.mark.parametrize(
    "strange",
    [
        {"metric": {"a": 1}, "values": []},
        {"metric": {}, "values": [[1]]},
        {"metric": {}, "values": [["1", "1"]]},
        {"metric": {f"l{n}": "" for n in range(65)}, "values": []},
        {"metric": {"a": "x" * 1_025}, "values": []},
        [],
        None,
        "row",
    ],
)
def test_a_series_that_cannot_be_read_costs_itself_alone(strange: object) -> None:
    answer = read(matrix(strange, row((1, "1"))))
    assert (len(answer.rows), answer.dropped) == (1, 1)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, (False, ())),
        ({"warnings": []}, (False, ())),
        ({"warnings": ["a store is\nnot there\x1b[2J"]}, (True, (r"a store is not there\x1b[2J",))),
        ({"isPartial": True}, (True, ())),
        ({"infos": ["might not be a counter"], "stats": {"seriesFetched": "1"}}, (False, ())),
    ],
)
def test_an_answer_in_part_says_so(
    extra: dict[str, object], expected: tuple[bool, tuple[str, ...]]
) -> None:
    answer = read(matrix(row((1, "1")), **extra))
    assert (answer.is_partial, answer.warnings) == expected


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"<html><body>Sign in</body></html>", ServerFailed, "<html><body>Sign in"),
        (b"", ServerFailed, "something else than metrics"),
        (b'{"status":"success","data":{"resul', ServerFailed, "something else than metrics"),
        (b"\xff\xfe\x00", ServerFailed, "something else than metrics"),
        (b"[]", ServerFailed, "something else than metrics"),
        (b"null", ServerFailed, "something else than metrics"),
        (b'{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}',
         ServerFailed, "'scalar' where series"),
        (b'{"status":"success","data":{"resultType":"vector","result":7}}',
         ServerFailed, "something else than metrics"),
        (b'{"status":"success"}', ServerFailed, "'' where series"),
        (b'{"status":"error","errorType":"bad_data","error":"parse error"}',
         QueryRefused, "bad_data: parse error"),
        (b"[" * 100_000, ServerFailed, "something else than metrics"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_named(body: bytes, kind: type[MetricsError], words: str) -> None:
    with pytest.raises(kind) as caught:
        read(bytearray(body))
    assert words in str(caught.value)
    assert URL in str(caught.value)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("bounds", [Bounds(series=2), Bounds(samples=3)])
def test_an_answer_with_more_than_the_bounds_is_refused(bounds: Bounds) -> None:
    body = matrix(*(row((1, "1"), (2, "2"), n=str(n)) for n in range(3)))
    with pytest.raises(AnswerTooLarge, match="more than"):
        read(body, bounds)


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_raise_an_error_of_this_client(body: bytes) -> None:
    assert refusal(bytearray(body)).isascii()
    with contextlib.suppress(MetricsError):
        assert isinstance(read(bytearray(body)), Answer)


@given(
    st.lists(
        st.tuples(
            st.floats(-1e12, 1e12) | st.integers(-(10**20), 10**20),
            st.floats().map(repr) | st.text(max_size=5),
        ),
        max_size=20,
    )
)
def test_samples_are_numbers_in_order_whatever_is_told(values: list[tuple[float, str]]) -> None:
    for only in read(matrix(row(*values))).rows:
        times = [one.at for one in only.samples]
        assert times == sorted(times)
        assert all(math.isfinite(one.value) for one in only.samples)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\n b", "a b"), ("\x1b[2J", r"\x1b[2J"), ("größe", r"gr\xf6\xdfe"), ("x" * 900, "x" * 300)],
)
def test_a_servers_own_words_are_one_short_line_of_ascii(text: str, shown: str) -> None:
    assert plain(text) == shown
